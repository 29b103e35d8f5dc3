"""The operations of a target step in training: on a GPU launching them is the limit, whatever the batch size."""

from collections import Counter
from typing import Any, Tuple

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_milk.models.encoder import EncoderOut
from tests.support import tiny_models as tiny

J = 28  # tokens of a sentence of the paper's corpora, on average; the scan of alpha takes 2 log2 J operations each way
MOST = {"soft": 60, "waitk": 75, "monotonic": 105, "mocha": 140, "milk": 150}


class Operations(TorchDispatchMode):
    """Counts what is computed: views are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        name = func._overloadpacket.__name__
        views = (r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
        if not any(views) and name != "_unsafe_view":
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


def operations(attention: str, steps: int) -> "Counter[str]":
    """Bottom layer and attention of the decoder over that many target steps, forward and backward."""
    model = tiny.model(attention=attention, noise=4.0, wait_k=100).train()
    h, y = torch.randn(3, J, 8, requires_grad=True), torch.randn(3, steps, 6, requires_grad=True)
    with Operations() as counted:
        s, c, _, alpha = model.decoder._schedule(y, EncoderOut(h, torch.tensor([J, 5, 20])), False)
        loss = s.sum() + c.sum()
        (loss + alpha.square().sum() if alpha.requires_grad else loss).backward()
    return counted.counts


@pytest.mark.parametrize("attention", tiny.FIVE)
def test_a_target_step_takes_few_operations(attention: str) -> None:
    step = operations(attention, 7)
    step.subtract(operations(attention, 6))
    assert 40 < sum(step.values()) <= MOST[attention], step
