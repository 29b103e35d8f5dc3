"""Soft attention: it stops at |x| and sees everything.  The offline model, and the ceiling of the others."""

from typing import Tuple

import torch
from torch import Tensor

from ..functional import prefix_softmax
from .base import (
    AttentionOptions,
    AttentionOutput,
    AttentionState,
    Memory,
    Queries,
    SimultaneousAttention,
    context,
    stopped_at,
)
from .energy import AdditiveEnergy


class SoftAttention(SimultaneousAttention):
    """beta_i = softmax(u_i)   (Bahdanau et al. 2015)."""

    streaming = False

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()
        self.soft_energy = AdditiveEnergy(options.query_dim, options.memory_dim, options.energy_dim, options.products)

    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool
    ) -> Tuple[AttentionOutput, AttentionState]:
        return self.attend(self.queries(s), memory), AttentionState(state.alpha, state.i + 1)

    def wants_to_write(self, queries: Queries, memory: Memory, i: int) -> Tensor:
        return torch.zeros_like(memory.lengths, dtype=torch.bool)

    def attend(self, queries: Queries, memory: Memory) -> AttentionOutput:
        beta = prefix_softmax(self.energy("soft_energy", queries, memory), memory.lengths)
        return AttentionOutput(context(beta, memory), beta, stopped_at(memory.lengths, beta))
