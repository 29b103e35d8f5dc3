"""The type in which matrix products are computed: float32, or bfloat16 with sums in float32.

A product a b with both operands rounded to bfloat16 (8 bits of mantissa) runs more than twice as fast on a processor
with instructions for it.  Each operand is off by a relative 2^-9 at most, the sums are taken in float32, and the result
is rounded to bfloat16 once more.  Only products are treated so: parameters, gradients, states, layer norms, gates,
softmax and schedules keep their type.

Under torch's autocast the type is autocast's: `--amp` of fairseq is the same thing, asked for from outside.

A function of this package that multiplies by a weight computes in the type *of the weight* and returns the type of its
input.  A module rounds its weight with `ProductPrecision`, once per update; the gradient comes back in float32.
"""

import logging
from functools import wraps
from typing import Any, Callable, Optional, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

T = TypeVar("T")

logger = logging.getLogger(__name__)


def bfloat16_products(device: torch.device) -> bool:
    """Does this device have instructions for products in bfloat16?"""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type == "cpu":
        built: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        return built and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return False


def autocast_dtype(device: torch.device) -> Optional[torch.dtype]:
    """The type that torch's autocast computes products in; None outside of it."""
    if hasattr(torch, "get_autocast_dtype"):
        if not torch.amp.is_autocast_available(device.type):  # `meta`, for one
            return None
        return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else None
    if device.type == "cpu":  # torch before 2.4
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def without_autocast(method: Callable[..., T]) -> Any:
    """For forward and backward of an autograd function that chooses the type of each product itself."""

    @wraps(method)
    def run(ctx: Any, *args: Any) -> T:
        device = next((x.device for x in args if isinstance(x, Tensor)), None)  # None: no gradient was sent back
        if device is None or autocast_dtype(device) is None:
            return method(ctx, *args)
        with torch.autocast(device.type, enabled=False):
            return method(ctx, *args)

    return run


class ProductPrecision:
    """The type of the products of a model, shared by all its modules.  None: that of the operands."""

    def __init__(self, wanted: Optional[torch.dtype] = None) -> None:
        self.wanted = wanted
        self.dtype: Optional[torch.dtype] = None  # in use: None until `use` is called
        self.said: Optional[str] = None

    def use(self, device: torch.device, enabled: bool) -> None:
        """Compute products in the wanted type from now on if `enabled` and if the device can, and say so once."""
        self.dtype = None
        if self.wanted is None or not enabled:
            return
        if bfloat16_products(device):
            self.dtype = self.wanted
            self._say(f"matrix products are computed in bfloat16, everything else in float32 ({device.type})")
        else:
            self._say(f"this {device.type} has no instructions for bfloat16: products are computed in float32")

    def operand(self, x: Tensor) -> Tensor:
        """x as a factor of a product.  Only float32 is rounded: a half-precision model is left alone."""
        dtype = autocast_dtype(x.device) or self.dtype
        return x if dtype is None or x.dtype != torch.float32 else x.to(dtype)

    def linear(self, x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        """W x + b in x's type.  x: (..., D), weight: (V, D), bias: (V,) -> (..., V)."""
        factor = self.operand(weight)
        if factor.dtype == x.dtype:
            return F.linear(x, weight, bias)
        product = F.linear(x.to(factor.dtype), factor).to(x.dtype)
        return product if bias is None else product + bias

    def _say(self, sentence: str) -> None:
        if sentence != self.said:
            logger.info(sentence)
            self.said = sentence
