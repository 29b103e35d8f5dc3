"""Additive energies (Bahdanau et al. 2015), the most expensive part of every mechanism, optimised for memory and time.

energy_j = v . tanh(k_j + q) + r    k_j = W_s h_j, projected once per batch; q = W_q s, once per target step
"""

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .product import autocast_dtype, without_autocast


class EnergyWeights(NamedTuple):
    """v and r of a batch in the form in which they are multiplied; see `energy_weights`."""

    w: Tensor  # (A,)
    shift: Optional[Tensor]  # ()
    slope: Tensor  # (A,), of the activation times w; no gradient of its own
    by_sigmoid: bool


def energy_weights(v: Tensor, r: Optional[Tensor], keys: Tensor) -> EnergyWeights:
    """v . tanh(x) + r in the form that is cheapest where the keys are.

    tanh(x) = 2 sigmoid(2x) - 1, so that v . tanh(x) + r = 2v . sigmoid(2x) + (r - sum v).  On a CPU torch's sigmoid
    takes a third of the time of its tanh, which is most of the time of an energy.  The error grows from 3e-8 to 2e-7,
    which is too much for half precision, so that keeps tanh.
    """
    if keys.device.type != "cpu" or keys.dtype not in (torch.float32, torch.float64):
        return EnergyWeights(v, r, v.detach(), False)
    total = v.sum()
    return EnergyWeights(2 * v, -total if r is None else r - total, 4 * v.detach(), True)


def _activation(keys: Tensor, query: Tensor, by_sigmoid: bool) -> Tensor:
    """sigmoid(2 (k + q)), or tanh(k + q).  (B, J, A), (B, A) -> (B, J, A)."""
    if by_sigmoid:
        return torch.add(2 * query.unsqueeze(1), keys, alpha=2).sigmoid_()
    return (keys + query.unsqueeze(1)).tanh_()


def _energy(keys: Tensor, query: Tensor, w: Tensor, shift: Optional[Tensor], by_sigmoid: bool) -> Tensor:
    energy = _activation(keys, query, by_sigmoid) @ w
    return energy if shift is None else energy.add_(shift)


class _AdditiveEnergy(torch.autograd.Function):
    """a = sigmoid(2 (k + q)), or tanh(k + q), is B x J x A for every target step: it is computed again in the backward
    instead of being kept.

    energy = w . a + shift.  With G = dL/denergy and a' = a (1 - a), or 1 - a^2:

        dL/dk = G slope a',   dL/dq = sum_j dL/dk_j,   dL/dw = sum_bj G a,   dL/dshift = sum_bj G.
    """

    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, keys: Tensor, query: Tensor, w: Tensor, shift: Optional[Tensor], slope: Tensor, by_sigmoid: bool
    ) -> Tensor:
        ctx.save_for_backward(keys, query, slope)
        ctx.by_sigmoid, ctx.shifted = by_sigmoid, shift is not None
        return _energy(keys, query, w, shift, by_sigmoid)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        keys, query, slope = ctx.saved_tensors
        a = _activation(keys, query, ctx.by_sigmoid)
        grad = grad.to(a.dtype)  # under autocast the energies are of lower precision than the keys may be
        grad_w = torch.mv(a.flatten(0, 1).t(), grad.flatten())
        backward = torch.ops.aten.sigmoid_backward if ctx.by_sigmoid else torch.ops.aten.tanh_backward
        grad_keys = backward(grad.unsqueeze(-1) * slope, a)
        return grad_keys, grad_keys.sum(1), grad_w, grad.sum() if ctx.shifted else None, None, None


def additive_energy(keys: Tensor, query: Tensor, v: Tensor, r: Optional[Tensor] = None) -> Tensor:
    """energy_j = v . tanh(k_j + q) + r.   keys: (B, J, A), query: (B, A), v: (A,), r: () or None = 0 -> (B, J).

    O(B J A) time, forward and twice backward; O(B J) memory kept for the backward.
    """
    return prepared_energy(keys, query, energy_weights(v, r, keys))


def prepared_energy(keys: Tensor, query: Tensor, weights: EnergyWeights) -> Tensor:
    """The same with weights that were prepared once for all steps of a batch."""
    if not torch.is_grad_enabled() and autocast_dtype(keys.device) is None:
        return _energy(keys, query, weights.w, weights.shift, weights.by_sigmoid)
    result: Tensor = _AdditiveEnergy.apply(keys, query, *weights)  # type: ignore[no-untyped-call]
    return result
