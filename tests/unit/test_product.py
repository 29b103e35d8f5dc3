"""Products in bfloat16: what they cost in accuracy, and what stays in float32."""

import copy
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor

from fairseq_milk.checks import precision as check_module
from fairseq_milk.console.errors import UserError
from fairseq_milk.functional import product
from fairseq_milk.functional.product import PACKED_FROM, DecodingWeight, ProductPrecision
from fairseq_milk.generation import DecodingOptions, translate
from fairseq_milk.tasks.generators import configure_precision
from tests.reliability.three_ways import collate, streamed
from tests.support import tiny_models as tiny

# Each operand is off by 2^-9 and so is the result; a gradient passes through a handful of products, and a recurrent
# state through as many as there are steps.
TOLERANCE = 0.05
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def has_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the processor has instructions for bfloat16; without them torch computes the same more slowly."""
    monkeypatch.setattr(product, "bfloat16_products", lambda device: True)


families = pytest.mark.parametrize("build", [tiny.model, tiny.transformer])
SIZES: Dict[Any, Dict[str, int]] = {
    tiny.model: dict(embed_dim=32, hidden_size=32, energy_dim=32),
    tiny.transformer: dict(embed_dim=32, ffn_dim=64),
}


def trained_gradients(
    build: Any, attention: str, dtype: torch.dtype = torch.float32, **changes: Any
) -> Dict[str, Tensor]:
    torch.manual_seed(0)
    layers = dict(encoder_layers=3, decoder_layers=3)
    model = build(attention=attention, spread=0.0, **layers, **SIZES[build], **changes).to(dtype).train()
    sample = tiny.batch(tiny.pairs(16, longest=8))
    loss, sample_size, _ = tiny.criterion(latency_weight=0.1)(model, sample)
    (loss / sample_size).backward()
    return {"loss": loss.detach().double() / sample_size, **tiny.gradients(model)}


def scale(gradients: Dict[str, Tensor], name: str) -> float:
    """The norm of a gradient.

    For g and r of a dot-product head, that of the whole head: each is a sum of terms of both signs that nearly cancel.
    """
    head, _, parameter = name.rpartition(".")
    shared = head.endswith("layers.0.attention.head") and parameter in ("g", "r")
    names = [other for other in gradients if other.startswith(f"{head}.")] if shared else [name]
    return float(torch.stack([gradients[other].norm() for other in names]).norm())


VARIANTS: List[Dict[str, Any]] = [
    {"attention": name, "share_all_embeddings": shared} for name in tiny.FIVE for shared in (False, True)
]


@pytest.mark.parametrize(
    "build, changes",
    [
        *((tiny.model, changes) for changes in [*VARIANTS, {"attention": "soft", "encoder_bidirectional": True}]),
        *((tiny.transformer, changes) for changes in VARIANTS),
    ],
)
def test_gradients_are_those_of_float64_but_for_rounding(build: Any, changes: Dict[str, Any]) -> None:
    truth = trained_gradients(build, dtype=torch.float64, **changes)
    rounded = trained_gradients(build, product_precision="bf16", **changes)
    plain = trained_gradients(build, **changes)
    assert truth.keys() == rounded.keys()
    assert abs(float(rounded.pop("loss") - truth["loss"])) < 0.01
    whole_error, whole = 0.0, 0.0
    for name, gradient in rounded.items():
        assert gradient.dtype == torch.float32, name
        assert not torch.equal(gradient, plain[name]) or gradient.numel() == 1, f"{name}: no product was rounded"
        error = float((gradient.double() - truth[name]).norm())
        whole_error, whole = whole_error + error**2, whole + float(truth[name].norm()) ** 2
        assert error < 3 * TOLERANCE * scale(truth, name), name
    assert whole_error**0.5 < TOLERANCE * whole**0.5


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("attention", tiny.FIVE)
@families
def test_autocast_around_the_training_gives_the_same(build: Any, attention: str, shared: bool) -> None:
    truth = trained_gradients(build, attention, share_all_embeddings=shared)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = trained_gradients(build, attention, share_all_embeddings=shared)
    assert truth.keys() == rounded.keys()
    assert abs(float(rounded.pop("loss") - truth["loss"])) < 0.02
    for name, gradient in rounded.items():
        assert gradient.dtype == torch.float32, name
        assert float((gradient - truth[name]).norm()) < 5 * TOLERANCE * scale(truth, name), name


@families
def test_parameters_states_and_features_stay_float32(build: Any) -> None:
    model = build(attention="milk", product_precision="bf16").train()
    sample = tiny.batch(tiny.pairs(4))
    features, extra = model(**sample["net_input"], features_only=True)
    assert features.dtype == extra["alpha"].dtype == extra["attn"].dtype == torch.float32
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@families
def test_evaluation_computes_in_float32(build: Any) -> None:
    torch.manual_seed(0)
    model = build(attention="milk", product_precision="bf16")
    torch.manual_seed(0)
    plain = build(attention="milk")
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


def test_a_model_in_half_precision_is_not_changed() -> None:
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


@pytest.mark.parametrize("attention", tiny.FIVE)
@families
def test_decoding_in_bfloat16_if_asked(build: Any, attention: str) -> None:
    """Batch and session agree in bfloat16 too, and the scores are those of float32 up to its rounding."""
    torch.manual_seed(2)
    model = build(20, attention=attention, **SIZES[build], spread=0.3).eval()
    if build is tiny.transformer and model.decoder.attention.learned:
        torch.nn.init.ones_(model.decoder.attention.head.g)  # no energy so close to 0 that rounding decides
    sources = [[5, 9, 7, 2], [6, 2], [8, 4, 11, 12, 5, 2]]
    options = DecodingOptions(max_len_a=1.0, max_len_b=0)
    exact = translate(model, collate(sources), options)
    model.decode_in("bf16")
    assert model.decoder.output.products.dtype == torch.bfloat16
    rounded = translate(model, collate(sources), options)
    streams = [streamed(model, source, options) for source in sources]
    assert [(one.tokens, one.delays) for one in rounded] == [(one.tokens, one.delays) for one in streams]
    assert [one.scores for one in rounded] != [one.scores for one in exact]
    for one, other in zip(rounded, exact):
        assert one.scores[0] == pytest.approx(other.scores[0], abs=0.2)
    model.decode_in("float32")
    assert [one.scores for one in translate(model, collate(sources), options)] == [one.scores for one in exact]


def test_what_cannot_decode_in_bfloat16_is_refused() -> None:
    with pytest.raises(UserError, match="--decode-precision must be float32 or bf16, got fp8"):
        configure_precision([tiny.model()], "fp8")
    configure_precision([torch.nn.Linear(1, 1)], "float32")
    with pytest.raises(UserError, match="--decode-precision bf16 is for models of fairseq_milk"):
        configure_precision([torch.nn.Linear(1, 1)], "bf16")


# ---- weights for decoding ---------------------------------------------------------------------------------------


FEW_AND_MANY = [1, PACKED_FROM, 70]  # rows: transposed weights, and packed ones


@pytest.mark.parametrize("rows", FEW_AND_MANY)
def test_weights_side_by_side_are_multiplied_at_once(rows: int) -> None:
    x, y, w, v, b = torch.randn(rows, 4), torch.randn(rows, 5), torch.randn(6, 4), torch.randn(6, 5), torch.randn(6)
    joined = DecodingWeight(ProductPrecision())
    torch.testing.assert_close(joined.linear(torch.cat((x, y), 1), w, v, bias=b), x @ w.t() + y @ v.t() + b)
    torch.testing.assert_close(joined.linear(x, w), x @ w.t())


def test_a_processor_without_onednn_multiplies_many_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, b = torch.randn(70, 4), torch.randn(6, 4), torch.randn(6)
    monkeypatch.setattr(product, "packable", lambda x: False)
    torch.testing.assert_close(DecodingWeight(ProductPrecision()).linear(x, w, bias=b), x @ w.t() + b)


@pytest.mark.parametrize("rows", FEW_AND_MANY)
def test_a_changed_weight_is_seen(rows: int) -> None:
    model = tiny.model(attention="milk").eval()
    output, features = model.decoder.output, torch.randn(rows, model.decoder.output.weight.size(1))
    with torch.no_grad():
        for change in (lambda w: None, lambda w: w.mul_(2), lambda w: w.fill_(1.0)):
            change(output.weight)
            torch.testing.assert_close(output.one_step(features), output(features))


def test_a_model_that_has_decoded_can_be_copied() -> None:
    model = tiny.model(attention="milk").eval()
    output, features = model.decoder.output, torch.randn(70, model.decoder.output.weight.size(1))
    with torch.no_grad():
        before = output.one_step(features)
        other = copy.deepcopy(model).decoder.output
        output.weight.zero_()
        torch.testing.assert_close(other.one_step(features), before)
        assert not torch.equal(output.one_step(features), before)


def test_a_training_that_goes_on_is_seen() -> None:
    """Optimisers write into `weight.data`, which torch does not count as a change."""
    model = tiny.model(attention="milk").eval()
    layer, x = model.decoder.layers[0], torch.randn(2, model.decoder.layers[0].input_size)
    with torch.no_grad():
        layer.step(x)
        model.train()
        layer.weight_x.data.copy_(layer.weight_x.roll(1, dims=0))
        model.eval()
        after = layer.step(x).h
    torch.testing.assert_close(after, layer.step(x).h.detach())  # with gradients the weights are taken as they are
