"""wait-k: it stops at min(k + floor((i-1)/r), |x|), whatever it reads, and sees everything read (Ma et al. 2018)."""

from typing import Tuple

from torch import Tensor

from ..functional import prefix_softmax, wait_k_delay
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


class WaitKAttention(SimultaneousAttention):
    """beta_i = softmax(u_i) over the first g_i tokens.  k may be changed for decoding."""

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()
        wait_k_delay(options.k, 1, options.rate)  # refuses a k or rate out of range
        self.soft_energy = AdditiveEnergy(options.query_dim, options.memory_dim, options.energy_dim, options.products)
        self.k = options.k
        self.rate = options.rate

    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool
    ) -> Tuple[AttentionOutput, AttentionState]:
        g = memory.lengths.clamp(max=wait_k_delay(self.k, state.i + 1, self.rate))
        return self.attend(self.queries(s), memory._replace(lengths=g)), AttentionState(state.alpha, state.i + 1)

    def wants_to_write(self, queries: Queries, memory: Memory, i: int) -> Tensor:
        return memory.lengths >= wait_k_delay(self.k, i, self.rate)

    def attend(self, queries: Queries, memory: Memory) -> AttentionOutput:
        beta = prefix_softmax(self.energy("soft_energy", queries, memory), memory.lengths)
        return AttentionOutput(context(beta, memory), beta, stopped_at(memory.lengths, beta))
