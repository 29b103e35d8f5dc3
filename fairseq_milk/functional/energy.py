"""Additive energies (Bahdanau et al. 2015): the expensive part of every mechanism, hence written for memory and time.

energy_j = v . tanh(k_j + q) + r    k_j = W_s h_j, projected once a batch; q = W_q s, once a target step
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from .product import without_autocast


def _tanh_of_sum(keys: Tensor, query: Tensor) -> Tensor:
    """t = tanh(k + q).  (B, J, A), (B, A) -> (B, J, A).

    tanh(x) = 2 sigmoid(2x) - 1: on a CPU torch's sigmoid takes a third of the time of its tanh, which is most of the
    time of an energy.  The error grows from 3e-8 to 2e-7, so half precision, which could not afford it, is left alone.
    """
    if keys.device.type != "cpu" or keys.dtype not in (torch.float32, torch.float64):
        return (keys + query.unsqueeze(1)).tanh_()
    return torch.add(2 * query.unsqueeze(1), keys, alpha=2).sigmoid_().mul_(2).sub_(1)


class _AdditiveEnergy(torch.autograd.Function):
    """t = tanh(k + q) is B x J x A for every target step: it is computed again in the backward instead of being kept.

    With G = dL/denergy:   dL/dk = G v (1 - t^2),   dL/dq = sum_j dL/dk_j,   dL/dv = sum_bj G t,   dL/dr = sum_bj G.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, keys: Tensor, query: Tensor, v: Tensor, r: Optional[Tensor]) -> Tensor:
        ctx.save_for_backward(keys, query, v)
        ctx.shifted = r is not None
        energy = _tanh_of_sum(keys, query) @ v
        return energy if r is None else energy.add_(r)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor, Tensor, Optional[Tensor]]:
        keys, query, v = ctx.saved_tensors
        t = _tanh_of_sum(keys, query)
        grad = grad.to(t.dtype)  # under autocast the energies are of lower precision than the keys may be
        grad_v = t.flatten(0, 1).t() @ grad.flatten()
        grad_keys = torch.ops.aten.tanh_backward(grad.unsqueeze(-1) * v, t)
        return grad_keys, grad_keys.sum(1), grad_v, grad.sum() if ctx.shifted else None


def additive_energy(keys: Tensor, query: Tensor, v: Tensor, r: Optional[Tensor] = None) -> Tensor:
    """energy_j = v . tanh(k_j + q) + r.   keys: (B, J, A), query: (B, A), v: (A,), r: () or None = 0 -> (B, J).

    O(B J A) time, forward and twice backward; O(B J) memory kept for the backward.
    """
    result: Tensor = _AdditiveEnergy.apply(keys, query, v, r)  # type: ignore[no-untyped-call]
    return result
