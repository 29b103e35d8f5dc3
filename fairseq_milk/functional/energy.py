"""Additive energies (Bahdanau et al. 2015): the expensive part of every mechanism, hence written for memory and time.

    energy_j = v . tanh(k_j + q)        k_j = W_s h_j, projected once a batch; q = W_q s, once a target step
"""

from typing import Any, Tuple

import torch
from torch import Tensor


class _AdditiveEnergy(torch.autograd.Function):
    """t = tanh(k + q) is B x J x A for every target step: it is computed again in the backward instead of being kept.

    With G = dL/denergy:   dL/dk = G v (1 - t^2),   dL/dq = sum_j dL/dk_j,   dL/dv = sum_bj G t.
    """

    @staticmethod
    def forward(ctx: Any, keys: Tensor, query: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(keys, query, v)
        return (keys + query.unsqueeze(1)).tanh_() @ v

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        keys, query, v = ctx.saved_tensors
        t = (keys + query.unsqueeze(1)).tanh_()
        grad = grad.to(t.dtype)  # under autocast the energies are of lower precision than the keys may be
        grad_v = t.flatten(0, 1).t() @ grad.flatten()
        grad_keys = t.square_().neg_().add_(1).mul_(v).mul_(grad.unsqueeze(-1))
        return grad_keys, grad_keys.sum(1), grad_v


def additive_energy(keys: Tensor, query: Tensor, v: Tensor) -> Tensor:
    """energy_j = v . tanh(k_j + q).   keys: (B, J, A), query: (B, A), v: (A,) -> (B, J).

    O(B J A) time, forward and twice backward; O(B J) memory kept for the backward.
    """
    result: Tensor = _AdditiveEnergy.apply(keys, query, v)  # type: ignore[no-untyped-call]
    return result
