"""Products in bfloat16: what they cost in accuracy, and what stays in float32."""

from types import SimpleNamespace
from typing import Any, Dict

import pytest
import torch
from torch import Tensor

from fairseq_milk.checks import precision as check_module
from fairseq_milk.functional import product
from fairseq_milk.functional.product import ProductPrecision
from tests.support import tiny_models as tiny

# Each operand is off by 2^-9 and so is the result; a gradient passes through a handful of products, and a recurrent
# state through as many as there are steps.
TOLERANCE = 0.05
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def has_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch computes in bfloat16 on every processor, if slowly: the tests need no instructions for it."""
    monkeypatch.setattr(product, "bfloat16_products", lambda device: True)


def trained_gradients(attention: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Dict[str, Tensor]:
    torch.manual_seed(0)
    model = tiny.model(
        attention=attention, encoder_layers=3, decoder_layers=3, embed_dim=32, hidden_size=32, energy_dim=32,
        spread=0.0, **changes,
    ).to(dtype)  # fmt: skip
    model.train()
    sample = tiny.batch(tiny.pairs(16, longest=8))
    loss, sample_size, _ = tiny.criterion(latency_weight=0.1)(model, sample)
    (loss / sample_size).backward()
    return {"loss": loss.detach().double() / sample_size, **tiny.gradients(model)}


@pytest.mark.parametrize("changes", [{}, {"share_all_embeddings": True}, {"encoder_bidirectional": True}])
@pytest.mark.parametrize("attention", tiny.FIVE)
def test_gradients_are_those_of_float64_but_for_rounding(attention: str, changes: Dict[str, Any]) -> None:
    if "encoder_bidirectional" in changes and attention != "soft":
        pytest.skip("a bidirectional encoder goes with soft attention")
    truth = trained_gradients(attention, torch.float64, **changes)
    rounded = trained_gradients(attention, product_precision="bf16", **changes)
    plain = trained_gradients(attention, **changes)
    assert truth.keys() == rounded.keys()
    assert abs(float(rounded.pop("loss") - truth["loss"])) < 0.01
    whole_error, whole = 0.0, 0.0
    for name, gradient in rounded.items():
        assert gradient.dtype == torch.float32, name
        assert not torch.equal(gradient, plain[name]) or gradient.numel() == 1, f"{name}: no product was rounded"
        error = float((gradient.double() - truth[name]).norm())
        scale = float(truth[name].norm())
        whole_error, whole = whole_error + error**2, whole + scale**2
        assert error < 3 * TOLERANCE * scale, name
    assert whole_error**0.5 < TOLERANCE * whole**0.5


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("attention", tiny.FIVE)
def test_autocast_is_the_same_asked_for_from_outside(attention: str, shared: bool) -> None:
    truth = trained_gradients(attention, share_all_embeddings=shared)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = trained_gradients(attention, share_all_embeddings=shared)
    assert truth.keys() == rounded.keys()
    assert abs(float(rounded.pop("loss") - truth["loss"])) < 0.02
    for name, gradient in rounded.items():
        assert gradient.dtype == torch.float32, name
        assert float((gradient - truth[name]).norm()) < 5 * TOLERANCE * float(truth[name].norm()), name


def test_parameters_states_and_features_stay_float32() -> None:
    model = tiny.model(attention="milk", product_precision="bf16").train()
    sample = tiny.batch(tiny.pairs(4))
    features, extra = model(**sample["net_input"], features_only=True)
    assert features.dtype == extra["alpha"].dtype == extra["attn"].dtype == torch.float32
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_evaluation_computes_in_float32() -> None:
    torch.manual_seed(0)
    model = tiny.model(attention="milk", product_precision="bf16")
    torch.manual_seed(0)
    plain = tiny.model(attention="milk")
    sample = tiny.batch(tiny.pairs(4))
    with torch.no_grad():
        trained = model.train()(**sample["net_input"], hard=True)[0]
        evaluated, truth = (m.eval()(**sample["net_input"])[0] for m in (model, plain))
    assert torch.equal(evaluated, truth)
    assert not torch.equal(trained, truth)


def test_a_processor_without_instructions_computes_in_float32_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(product, "bfloat16_products", lambda device: False)
    products = ProductPrecision(torch.bfloat16)
    with caplog.at_level("INFO"):
        for _ in range(3):
            products.use(CPU, True)
    assert products.operand(torch.ones(2)).dtype == torch.float32
    assert [record.message for record in caplog.records] == [
        "this cpu has no instructions for bfloat16: products are computed in float32"
    ]


@pytest.mark.parametrize("instructions", [True, False])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_check_says_which_type_is_used(precision: str, instructions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "bfloat16_products", lambda device: instructions)
    model = tiny.model(product_precision=precision)
    found = check_module.check_precision(SimpleNamespace(model=model))  # type: ignore[arg-type]
    rounded = precision == "bf16" and instructions
    assert found.figures == {"products": "bfloat16" if rounded else "float32"}
    assert found.status == ("warn" if precision == "bf16" and not instructions else "ok")


def test_a_model_in_half_precision_is_left_alone() -> None:
    products = ProductPrecision(torch.bfloat16)
    products.use(CPU, True)
    assert products.operand(torch.ones(2, dtype=torch.float16)).dtype == torch.float16
    assert products.operand(torch.ones(2, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_map_in_bfloat16(bias: bool) -> None:
    products = ProductPrecision(torch.bfloat16)
    x, weight, b = torch.randn(3, 4, 5), torch.randn(6, 5), torch.randn(6) if bias else None
    truth = torch.nn.functional.linear(x, weight, b)
    assert torch.equal(products.linear(x, weight, b), truth)
    products.use(CPU, True)
    rounded = products.linear(x, weight, b)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, truth, rtol=0.02, atol=0.05)
    assert not torch.equal(rounded, truth)
