"""A sixth mechanism: a stop and a lookback that the plugin does not have, for the contract tests."""

from contextlib import contextmanager
from typing import Dict, Iterator
from unittest import mock

import torch
from torch import Tensor

from fairseq_milk.attention import ATTENTIONS, Bernoulli, FixedStop, Lookback, Memory, Pair
from fairseq_milk.functional import infinite_lookback
from fairseq_milk.functional.masking import spread


class TwoByTwo(FixedStop):
    """Two tokens are read, two written, and so on."""

    def delay(self, i: int) -> float:
        return 2 * ((i + 1) // 2)


class Mean(Lookback):
    """All that has been read, each token with the same weight: beta_ij = sum_{k>=j} alpha_ik / k."""

    soft = False

    def expected(self, alpha: Tensor, u: object, memory: Memory) -> Tensor:
        return infinite_lookback(alpha, torch.zeros_like(alpha) + spread(memory.barrier, alpha))

    def certain(self, u: object, memory: Memory) -> Tensor:
        return memory.barrier.softmax(-1)


SIXTH: Dict[str, Pair] = {"two by two x mean": (TwoByTwo, Mean), "Bernoulli x mean": (Bernoulli, Mean)}


@contextmanager
def mechanism(name: str) -> Iterator[str]:
    """The --attention with which models are built with this mechanism: a pair of `SIXTH` stands in place of milk."""
    if name not in SIXTH:
        yield name
        return
    with mock.patch.dict(ATTENTIONS, milk=SIXTH[name]):
        yield "milk"
