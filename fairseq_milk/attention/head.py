"""Where a learned head stops: Bernoulli decisions along the source (paper, sections 3.1 and 3.4)."""

import math

import torch
from torch import Tensor

from ..functional import expected_alignment, expected_alignment_parallel
from ..functional.masking import at_least_float32
from .base import AttentionOptions, AttentionState, Memory
from .energy import MonotonicEnergy

THRESHOLD = 0.5  # of the probability above which a hard head stops: where its energy changes sign


class BernoulliHead(MonotonicEnergy):
    """p_ij = sigmoid(e_ij + N(0, n)) in training, [e_ij > 0] where the schedule is hard.

    n is the standard deviation of the noise, which drives p towards 0 and 1 so that the expected schedule resembles
    the hard one.  It may grow to its value over the first `noise_ramp` updates: little noise lets the head move, much
    makes it decide.
    """

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__(
            options.query_dim,
            options.memory_dim,
            options.energy_dim,
            options.energy_bias,
            options.head_pace,
            options.products,
        )
        self.final_noise, self.noise_ramp = options.noise, options.noise_ramp
        self.noise = options.noise
        self.preserve_mass = options.preserve_mass
        self.alignment = expected_alignment if options.exact_alignment else expected_alignment_parallel
        self.threshold = THRESHOLD

    def set_num_updates(self, num_updates: int) -> None:
        """fairseq calls this before every update."""
        self.noise = self.final_noise * min(1.0, (num_updates + 1) / (self.noise_ramp + 1))

    def expected_stop(self, query: Tensor, keys: Tensor, memory: Memory, state: AttentionState, hard: bool) -> Tensor:
        """alpha_i.  (B, J)."""
        e = self(keys, query).to(state.alpha.dtype)
        if hard:
            e = torch.where(self._decides(e), math.inf, -math.inf).to(e.dtype)
            return expected_alignment(e, state.alpha, memory.lengths)  # the last token is always a stop
        if self.training and self.noise > 0:
            e = e + self.noise * torch.randn_like(e)
        return self.alignment(e, state.alpha, memory.lengths, self.preserve_mass)

    def stops(self, query: Tensor, keys: Tensor, memory: Memory) -> Tensor:
        """Does the head stop on the token read last?  (B,) bool."""
        last = keys[torch.arange(keys.size(0), device=keys.device), memory.lengths - 1]  # (B, energy_dim)
        return self._decides(self(last.unsqueeze(1), query).squeeze(1))

    def _decides(self, e: Tensor) -> Tensor:
        """[p > threshold], by the energy: [e > 0] by default.  Half precision would round the limit too."""
        stop: Tensor = at_least_float32(e) > math.log(self.threshold / (1 - self.threshold))
        return stop
