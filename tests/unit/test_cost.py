"""What benchmarks/cost.py counts, against what can be written down."""

import pytest
import torch
from torch import nn

from benchmarks import cost
from benchmarks.build import Shape, build_model


def test_a_linear_layer_by_hand() -> None:
    """2 B D V operations forward, as many for each gradient; x and the output are what is kept."""
    B, D, V = 3, 5, 7
    layer, x = nn.Linear(D, V, bias=False), torch.randn(B, D, requires_grad=True)
    with cost.Meter() as meter:
        y = layer(x)
        assert meter.flops == 2 * B * D * V and meter.alive == 4 * B * V
        (y * y).sum().backward()
        del y
    assert meter.flops == 3 * 2 * B * D * V
    assert meter.alive == 4 * (B * D + D * V)  # the two gradients


def test_the_model_s_operations_are_six_times_its_matrices() -> None:
    """Each token multiplies every matrix once forward and twice backward; the embeddings are looked up."""
    words, hidden, length = 200, 32, 6
    model = build_model("milk", Shape(1, 1, words=words, hidden=hidden), encoder_layers=2, decoder_layers=3)
    one = cost.cost(model, length, words)
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2) - 2 * words * hidden
    assert one.flops == pytest.approx(6 * matrices * length, rel=0.1)
    assert one.kept > 4 * length * hidden * 5 and one.operations > 100


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--words", "100", "--hidden", "16", "--layers", "1", "1", "--lengths", "4", "8"]
    assert cost.main(small) == 0
    said = capsys.readouterr().out
    assert "| 8 | 128 | 4 |" in said and "an update of 4096" in said
    assert [line.split("|")[1].strip() for line in said.splitlines() if line.startswith("| 4 ")] == ["4", "4"]
