"""Patch for `--amp`: gradients are divided by the loss scale once, not twice.

fairseq's AMPOptimizer unscales the gradients through torch's optimiser before it clips them, but then steps its own
wrapper, for which the scaler divides the gradients again.  Adam's epsilon and the gradient guard would see gradients
that are too small by the loss scale.  Here the scaler unscales the wrapper, so that it knows that this was done.
"""

from typing import Any, Callable, Optional

from fairseq.optim.amp_optimizer import AMPOptimizer
from torch import Tensor

_clip_grad_norm = AMPOptimizer.clip_grad_norm


class _Unscaling:
    """A scaler for `AMPOptimizer.clip_grad_norm` that unscales the wrapper instead of torch's optimiser."""

    def __init__(self, scaler: Any, wrapper: Any) -> None:
        self._scaler, self._wrapper = scaler, wrapper

    def unscale_(self, optimizer: Any) -> None:
        self._scaler.unscale_(self._wrapper)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scaler, name)


def clip_grad_norm(
    self: Any, max_norm: float, aggregate_norm_fn: Optional[Callable[[Tensor], Tensor]] = None
) -> Tensor:
    scaler = self._grad_scaler
    self._grad_scaler = _Unscaling(scaler, self.fp32_optimizer)
    try:
        norm: Tensor = _clip_grad_norm(self, max_norm, aggregate_norm_fn)
        return norm
    finally:
        self._grad_scaler = scaler


def install() -> None:
    AMPOptimizer.clip_grad_norm = clip_grad_norm
