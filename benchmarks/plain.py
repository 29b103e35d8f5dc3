"""Attention in plain autograd: the peers of the memory row.

The equations are those of `fairseq_milk.attention`; nothing is computed again, so every tanh is kept for the backward.
"""

from typing import Optional, Tuple

import torch
from torch import Tensor

from fairseq_milk.attention import AttentionOutput, AttentionState, Memory, SimultaneousAttention, context
from fairseq_milk.functional import expected_alignment_parallel, padding_mask


def energy(keys: Tensor, query: Tensor, v: Tensor) -> Tensor:
    return torch.tanh(keys + query.unsqueeze(1)) @ v


class PlainSoft(SimultaneousAttention):
    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool, alpha: Optional[Tensor] = None
    ) -> Tuple[AttentionOutput, AttentionState]:
        u = energy(memory.keys["soft_energy"], s @ self.soft_energy.w_q, self.soft_energy.v)
        beta = u.masked_fill(padding_mask(memory.lengths, u.size(1)), float("-inf")).softmax(-1)
        return AttentionOutput(context(beta, memory), beta, state.alpha), AttentionState(state.alpha, state.i + 1)


class PlainMilk(SimultaneousAttention):
    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool, alpha: Optional[Tensor] = None
    ) -> Tuple[AttentionOutput, AttentionState]:
        head, soft = self.head, self.soft_energy
        e = energy(memory.keys["head"], s @ head.w_q + head.b, head.g * head.v / head.v.norm()) + head.r
        e = e + float(self.stop.noise) * torch.randn_like(e)  # type: ignore[arg-type]
        alpha = expected_alignment_parallel(e, state.alpha, memory.lengths)
        u = energy(memory.keys["soft_energy"], s @ soft.w_q, soft.v)
        weights = (u - u.max(dim=-1, keepdim=True).values).exp()
        share = alpha / weights.cumsum(-1).clamp(min=1e-10)
        beta = weights * share.flip(-1).cumsum(-1).flip(-1)
        return AttentionOutput(context(beta, memory), beta, alpha), AttentionState(alpha, state.i + 1)
