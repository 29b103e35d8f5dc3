"""Parameters that learn faster than others."""

from typing import Any, Tuple

import torch
from torch import Tensor


class _Paced(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, parameter: Tensor, pace: float) -> Tensor:
        return pace * parameter

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None]:
        return grad, None


def paced(parameter: Tensor, pace: float) -> Tensor:
    """`pace` times the parameter, with the gradient of the product as the gradient of the parameter.

    Adam moves a parameter by at most about the learning rate per update, whatever the size of its gradient.  What is
    stored divided by `pace` therefore moves `pace` times as fast.  A gradient that is multiplied by `pace` as well
    does not change that, but it dominates the norm by which all gradients are clipped: with r and g at a pace of 160
    that norm was 40 instead of 1, and the rest of the model hardly learned.
    """
    if pace == 1:
        return parameter
    if not torch.is_grad_enabled():
        return pace * parameter
    result: Tensor = _Paced.apply(parameter, pace)  # type: ignore[no-untyped-call]
    return result


@torch.no_grad()
def store_paced(pace: float, *parameters: Tensor) -> None:
    """Divide parameters that have just been drawn by the pace with which they are to learn."""
    for parameter in parameters:
        parameter.div_(pace)
