"""MoChA: a learned head with a soft head over the last w tokens (Chiu and Raffel 2018)."""

from typing import Tuple

from torch import Tensor

from ..functional import chunkwise_lookback, prefix_softmax
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


class MochaAttention(SimultaneousAttention):
    """beta_ij = sum_{k=j}^{j+w-1} alpha_ik exp(u_ij) / sum_{l=k-w+1}^{k} exp(u_il)."""

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()
        if options.chunk_size < 1:
            raise ValueError(f"the chunk size of MoChA must be at least 1, got {options.chunk_size}")
        self.head = BernoulliHead(options)
        self.soft_energy = AdditiveEnergy(options.query_dim, options.memory_dim, options.energy_dim, options.products)
        self.chunk_size = options.chunk_size

    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool
    ) -> Tuple[AttentionOutput, AttentionState]:
        queries = self.queries(s)
        alpha = self.head.expected_stop(queries["head"], memory.keys["head"], memory, state, hard)
        u = self.energy("soft_energy", queries, memory)
        beta = chunkwise_lookback(alpha, u, self.chunk_size, memory.lengths)
        return AttentionOutput(context(beta, memory), beta, alpha), AttentionState(alpha, state.i + 1)

    def wants_to_write(self, queries: Queries, memory: Memory, i: int) -> Tensor:
        return self.head.stops(queries["head"], memory.keys["head"], memory)

    def attend(self, queries: Queries, memory: Memory) -> AttentionOutput:
        u = self.energy("soft_energy", queries, memory)
        beta = prefix_softmax(u, memory.lengths, window=self.chunk_size)
        return AttentionOutput(context(beta, memory), beta, stopped_at(memory.lengths, beta))
