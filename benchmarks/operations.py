"""The number of operations per target step in training: on a GPU launching them limits the speed at any batch size."""

from collections import Counter
from typing import Any, Dict, List, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.build import Shape, build_model
from benchmarks.harness import Bar, Check, Outcome, Row, Size
from fairseq_milk.models.encoder import EncoderOut

J = 28  # tokens of a sentence of the paper's corpora, on average; the scan of alpha takes 2 log2 J operations each way
MOST = {"soft": 60, "waitk": 75, "monotonic": 105, "mocha": 140, "milk": 150}
HIDDEN = 8


def computes(func: Any) -> bool:
    """Whether the operation computes something, and does not only return a view of its input."""
    views = (r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
    return not any(views) and func._overloadpacket.__name__ != "_unsafe_view"


class Operations(TorchDispatchMode):
    """Counts what is computed: views are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if computes(func):
            self.counts[func._overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def operations(attention: str, steps: int, **options: Any) -> "Counter[str]":
    """Bottom layer and attention of the decoder over that many target steps, forward and backward."""
    model = build_model(attention, Shape(3, J, words=20, layers=1, hidden=HIDDEN), wait_k=100, **options).train()
    h, y = torch.randn(3, J, HIDDEN, requires_grad=True), torch.randn(3, steps, HIDDEN, requires_grad=True)
    with Operations() as counted:
        s, c, _, alpha = model.decoder._schedule(y, EncoderOut(h, torch.tensor([J, 5, 20])), False)
        loss = s.sum() + c.sum()
        (loss + alpha.square().sum() if alpha.requires_grad else loss).backward()
    return counted.counts


def of_a_step(attention: str, **options: Any) -> "Counter[str]":
    """The operations per target step of a model with these options."""
    step = operations(attention, 7, **options)
    step.subtract(operations(attention, 6, **options))
    return step


def measure(size: Size) -> Outcome:
    counts: Dict[str, int] = {attention: sum(of_a_step(attention).values()) for attention in MOST}
    checks = [Check(attention, count, Bar("<=", MOST[attention]), "") for attention, count in counts.items()]
    return Outcome(checks, {}, f"{J} source tokens")


ROWS: List[Row] = [
    Row("operations", "operations per target step, bottom layer + attention, forward + backward", "a count", measure)
]
