"""Features that the oldest supported torch lacks (docs/how-to/install.md): tests that need one of them are skipped."""

import pytest
import torch

from fairseq_milk.live.tracing import can_trace

NO_EXPORT = "exporting needs a newer torch"


def multiplies_float16() -> bool:
    """Whether torch has products of float16 on a CPU; 2.1 has none."""
    one = torch.ones(1, 1, dtype=torch.float16)
    try:
        torch.mm(one, one)
    except RuntimeError:
        return False
    return True


def writes_on_meta() -> bool:
    """Whether operators of a backward write to a given tensor on the device `meta`; those of 2.1 do not."""
    x = torch.ones(1, device="meta")
    try:
        torch.ops.aten.tanh_backward(x, x, grad_input=torch.empty_like(x))
    except TypeError:
        return False
    return True


def rounds_rows_alike() -> bool:
    """Whether a row of a bfloat16 product on a CPU is independent of the number of rows; in 2.1 it is not."""
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(210, 7, 6, generator=draw).bfloat16()
    v = torch.randn(6, generator=draw).bfloat16()
    return torch.equal(x @ v, torch.cat([row.unsqueeze(0) @ v for row in x]))


# What benchmarks/cost.py counts depends on torch; its figures are those of the torch in scripts/constraints.txt.
needs_counts = pytest.mark.skipif(not can_trace(), reason="benchmarks/cost.py counts otherwise with an old torch")
needs_meta = pytest.mark.skipif(not writes_on_meta(), reason="this torch has no tanh_backward on the device meta")
needs_float16 = pytest.mark.skipif(not multiplies_float16(), reason="this torch has no float16 products on a CPU")
needs_export = pytest.mark.skipif(not can_trace(), reason=NO_EXPORT)
needs_equal_rows = pytest.mark.skipif(not rounds_rows_alike(), reason="this torch rounds bfloat16 by the batch")
FLOAT16 = pytest.param(torch.float16, marks=needs_float16)
