"""The type in which matrix products are computed: float32, or bfloat16 with sums in float32.

A product a b with both operands rounded to bfloat16 (8 bits of mantissa) runs more than twice as fast on a processor
with instructions for it.  Each operand is off by a relative 2^-9 at most, the sums are taken in float32, and the result
is rounded to bfloat16 once more.  This applies to products only: parameters, gradients, states, layer norms, gates,
softmax and schedules keep their type.

Under torch's autocast (`--amp` of fairseq) products are computed in the type of autocast.

A function of this package that multiplies by a weight computes in the type *of the weight* and returns the type of its
input.  A module rounds its weight with `ProductPrecision`, once per update; the gradient comes back in float32.
"""

import logging
from functools import wraps
from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

T = TypeVar("T")

logger = logging.getLogger(__name__)

PACKED_FROM = 2  # rows from which a packed weight is multiplied faster
ROWS = 64  # for which it is packed


def bfloat16_products(device: torch.device) -> bool:
    """Whether this device has instructions for products in bfloat16."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type == "cpu":
        built: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        return built and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return False


def autocast_dtype(device: torch.device) -> Optional[torch.dtype]:
    """The type in which torch's autocast computes products; None outside of autocast."""
    if hasattr(torch, "get_autocast_dtype"):
        if not torch.amp.is_autocast_available(device.type):  # for example `meta`
            return None
        return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else None
    if device.type == "cpu":  # torch before 2.4
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def without_autocast(method: Callable[..., T]) -> Any:
    """Decorator that disables autocast in an autograd function that chooses the type of each product itself."""

    @wraps(method)
    def run(ctx: Any, *args: Any) -> T:
        device = next((x.device for x in args if isinstance(x, Tensor)), None)  # None: there is no gradient
        if device is None or autocast_dtype(device) is None:
            return method(ctx, *args)
        with torch.autocast(device.type, enabled=False):
            return method(ctx, *args)

    return run


class ProductPrecision:
    """The type of the products of a model, shared by all its modules.  None: that of the operands."""

    def __init__(self, wanted: Optional[torch.dtype] = None) -> None:
        self.wanted = wanted  # in training
        self.decoding: Optional[torch.dtype] = None  # in evaluation
        self.dtype: Optional[torch.dtype] = None  # None until `use` is called
        self.said: Optional[str] = None

    def use(self, device: torch.device, training: bool) -> None:
        """From now on compute products in the type wanted in training, or in evaluation, if supported; logged once."""
        self.dtype, wanted = None, self.wanted if training else self.decoding
        if wanted is None:
            return
        if bfloat16_products(device):
            self.dtype = wanted
            self._say(f"matrix products are computed in bfloat16, everything else in float32 ({device.type})")
        else:
            self._say(f"this {device.type} has no instructions for bfloat16: products are computed in float32")

    def operand(self, x: Tensor) -> Tensor:
        """x as a factor of a product.  Only float32 is rounded; half precision is kept."""
        dtype = autocast_dtype(x.device) or self.dtype
        return x if dtype is None or x.dtype != torch.float32 else x.to(dtype)

    def transposed(self, x: Tensor) -> Tensor:
        """The operand for products from the left, with its rows in memory one after the other.  (V, D) -> (D, V)."""
        return self.operand(x.t().contiguous())

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


def packable(x: Tensor) -> bool:
    """Whether a product with x can use a weight in oneDNN's own format: float32 on a CPU, outside of autocast."""
    known = x.device.type == "cpu" and x.dtype == torch.float32 and autocast_dtype(x.device) is None
    built = known and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return built and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class DecodingWeight:
    """Weights side by side in the form that is multiplied fastest: made once, and kept from step to step of decoding.

    Decoding multiplies few rows by the same weights again and again.  One row by a weight of 8,000 x 512 takes half of
    the time if the weight is transposed, so that its columns lie in memory one after the other; 4 to 64 rows take one
    to two thirds of the time if it is packed in the blocks of oneDNN.  One product by two weights takes two thirds of
    the time of two.

    A form is made again when a weight was changed.  torch does not see what is written into `weight.data`, as
    optimisers do: `forget` is to be called when a training goes on.
    """

    def __init__(self, products: ProductPrecision) -> None:
        self.products = products
        self.forget()

    def forget(self) -> None:
        self._forms: Dict[Any, Tuple[Any, Tensor]] = {}  # by the function that makes it: what it was made of, itself

    def __getstate__(self) -> Dict[str, Any]:
        """A copy makes its own: what is packed cannot be copied."""
        return {"products": self.products, "_forms": {}}

    def linear(self, x: Tensor, *weights: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        """W x + b for W = [W_1, W_2, ...], in x's type.

        x: (B, D_1 + D_2 + ...), weights: (V, D_1), (V, D_2), ..., bias: (V,) -> (B, V).
        """
        if x.size(0) >= PACKED_FROM and self.products.dtype is None and packable(x):
            packed = self._form(_packed, weights)
            product: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
            return product
        factor = self._form(self.products.transposed, weights)
        if bias is not None and factor.dtype == x.dtype:
            return torch.addmm(bias, x, factor)
        product = torch.mm(x.to(factor.dtype), factor).to(x.dtype)
        return product if bias is None else product + bias

    def _form(self, make: Callable[[Tensor], Tensor], weights: Tuple[Tensor, ...]) -> Tensor:
        made_of = (self.products.dtype, *((w.data_ptr(), w.dtype, w._version) for w in weights))
        known = self._forms.get(make)
        if known is None or known[0] != made_of:
            known = self._forms[make] = made_of, make(torch.cat([w.detach() for w in weights], dim=1))
        return known[1]


def _packed(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
    return packed
