"""The layer-normalised LSTM against torch's own LSTM, and the upper layers of the decoder outside the time loop."""

from typing import Callable, List

import torch
from torch import Tensor, nn

from benchmarks.build import Shape, build_batch, build_model
from benchmarks.harness import Bar, Check, Outcome, Row, Size, compare
from fairseq_milk.models.decoder import RNMTDecoder
from fairseq_milk.models.encoder import EncoderOut
from fairseq_milk.modules import LayerNormLSTM


def forward_backward(layer: nn.Module, x: Tensor) -> Callable[[], None]:
    x = x.clone().requires_grad_()

    def run() -> None:
        layer.zero_grad(set_to_none=True)
        x.grad = None
        layer(x)[0].sum().backward()

    return run


def lstm_row(hidden: int, batch: int, steps: int, limit: float) -> Row:
    def measure(size: Size) -> Outcome:
        torch.manual_seed(1)
        x = torch.randn(batch, steps, hidden)
        ours, theirs = LayerNormLSTM(hidden, hidden), nn.LSTM(hidden, hidden, batch_first=True)
        times = compare({"LN": forward_backward(ours, x), "nn.LSTM": forward_backward(theirs, x)}, size, 0.7)
        return Outcome(times.check("LN", "nn.LSTM", Bar("<=", limit)), times.figures())

    what = f"layer-normalised LSTM layer, H={hidden} B={batch} T={steps}"
    return Row(f"lstm-{hidden}", what, "nn.LSTM, which has no layer norm", measure)


# ---- upper layers ----------------------------------------------------------------------------------------------------


def all_inside(decoder: RNMTDecoder, tokens: Tensor, encoder_out: EncoderOut) -> Tensor:
    """The features of `decoder(tokens, encoder_out)` with every layer inside the loop over target steps."""
    memory = decoder.attention.remember(encoder_out.h, encoder_out.lengths)
    attention, state = decoder.attention.begin(memory), decoder.begin(tokens.size(0))
    features: List[Tensor] = []
    for i in range(tokens.size(1)):
        s = decoder.query(tokens[:, i], state)
        out, attention = decoder.attention.expected(s.h, memory, attention, False)
        feature, state = decoder.write(s, out.c, state)
        features.append(feature)
    return torch.stack(features, dim=1)


def upper_layers(size: Size) -> Outcome:
    shape = Shape(B=size.pick(64, 8), J=size.pick(30, 6), words=1000, layers=8, hidden=size.pick(256, 64))
    model = build_model("milk", shape, encoder_layers=1, dropout=0.0, noise=0.0)
    net_input = build_batch(shape)["net_input"]
    tokens = net_input["prev_output_tokens"]
    with torch.no_grad():
        encoded = model.encoder(net_input["src_tokens"])

    def run(features: Callable[[], Tensor]) -> Callable[[], None]:
        def step() -> None:
            model.zero_grad(set_to_none=True)
            features().sum().backward()

        return step

    inside = lambda: all_inside(model.decoder, tokens, encoded)  # noqa: E731
    outside = lambda: model.decoder(tokens, encoded, features_only=True)[0]  # noqa: E731
    difference = (inside() - outside()).abs().max().item()
    times = compare({"outside": run(outside), "inside": run(inside)}, size)
    checks = times.check("outside", "inside", Bar("<=", 0.8))
    checks.append(Check("largest difference of the features", difference, Bar("<=", 1e-4), ""))
    return Outcome(checks, times.figures())


ROWS: List[Row] = [
    lstm_row(512, 64, 30, 1.35),
    lstm_row(256, 220, 15, 1.5),
    Row("upper-layers", "8-layer decoder, upper layers outside the time loop", "all layers inside", upper_layers),
]
