"""The type in which training computes matrix products on this machine."""

from ..functional.product import ProductPrecision, bfloat16_products
from .finding import OK, WARN, Finding
from .subject import Subject


def check_precision(subject: Subject) -> Finding:
    """Whether the device has instructions for the type of --product-precision."""
    output = subject.model.decoder.output
    products: ProductPrecision = output.products
    device = output.weight.device
    if products.wanted is None:
        return Finding(OK, "matrix products are computed in float32", {"products": "float32"})
    if not bfloat16_products(device):
        sentence = f"--product-precision bf16, but this {device.type} has no instructions for bfloat16: float32 is used"
        return Finding(WARN, sentence, {"products": "float32"})
    sentence = f"training computes its products in bfloat16 on this {device.type}, decoding in float32 unless asked"
    return Finding(OK, sentence, {"products": "bfloat16"})
