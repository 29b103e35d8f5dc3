"""Monotonic attention: a learned head that sees only the token it stops on (Raffel et al. 2017)."""

from typing import Tuple

from torch import Tensor

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
from .head import BernoulliHead


class MonotonicAttention(SimultaneousAttention):
    """beta_i = alpha_i."""

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()
        self.head = BernoulliHead(options)

    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool
    ) -> Tuple[AttentionOutput, AttentionState]:
        queries = self.queries(s)
        alpha = self.head.expected_stop(queries["head"], memory.keys["head"], memory, state, hard)
        return AttentionOutput(context(alpha, memory), alpha, alpha), AttentionState(alpha, state.i + 1)

    def wants_to_write(self, queries: Queries, memory: Memory, i: int) -> Tensor:
        return self.head.stops(queries["head"], memory.keys["head"], memory)

    def attend(self, queries: Queries, memory: Memory) -> AttentionOutput:
        alpha = stopped_at(memory.lengths, memory.h[..., 0])
        return AttentionOutput(context(alpha, memory), alpha, alpha)
