"""MILk: a learned head with a soft head over everything read (the paper, section 3.2)."""

from typing import Tuple

from torch import Tensor

from ..functional import infinite_lookback, prefix_softmax
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
from .head import BernoulliHead


class MilkAttention(SimultaneousAttention):
    """beta_ij = sum_{k=j}^{|x|} alpha_ik exp(u_ij) / sum_{l=1}^{k} exp(u_il)   (equation (beta))."""

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()
        self.head = BernoulliHead(options)
        self.soft_energy = AdditiveEnergy(options.query_dim, options.memory_dim, options.energy_dim, options.products)

    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool
    ) -> Tuple[AttentionOutput, AttentionState]:
        queries = self.queries(s)
        alpha = self.head.expected_stop(queries["head"], memory.keys["head"], memory, state, hard)
        beta = infinite_lookback(alpha, self.energy("soft_energy", queries, memory), memory.lengths)
        return AttentionOutput(context(beta, memory), beta, alpha), AttentionState(alpha, state.i + 1)

    def wants_to_write(self, queries: Queries, memory: Memory, i: int) -> Tensor:
        return self.head.stops(queries["head"], memory.keys["head"], memory)

    def attend(self, queries: Queries, memory: Memory) -> AttentionOutput:
        beta = prefix_softmax(self.energy("soft_energy", queries, memory), memory.lengths)
        return AttentionOutput(context(beta, memory), beta, stopped_at(memory.lengths, beta))
