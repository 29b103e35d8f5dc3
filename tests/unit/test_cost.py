"""The counts of benchmarks/cost.py against values computed by hand."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks import cost
from benchmarks.build import Shape, build_model
from tests.support.torch_features import needs_counts


def test_a_linear_layer_by_hand() -> None:
    """2 B D V operations forward, as many for each gradient; x and the output are kept."""
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
    small = ["--words", "100", "--hidden", "16", "--layers", "1", "1", "--lengths", "4", "8", "--pairs", "9000"]
    assert cost.main(small) == 0
    said = capsys.readouterr().out
    assert "| 8 | 128 | 4 |" in said and "an update of 4096" in said
    assert [line.split("|")[1].strip() for line in said.splitlines() if line.startswith("| 4 ")] == ["4", "4"]


@needs_counts
def test_the_page_has_the_counts_and_the_waiting_of_the_code() -> None:
    """docs/explanation/cost.md: operations, which do not depend on the sizes of layers, and hours with waiting."""
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "cost.md").read_text(encoding="utf-8")
    layers = {"encoder_layers": 6, "decoder_layers": 8}
    model = build_model("milk", Shape(1, 1, words=100, hidden=16), **layers)
    operations = cost.count(model, Shape(2, 28, words=100)).operations
    assert f"operations of a forward and backward, whatever the batch size: {operations:,}\n" in page
    flops = re.search(r"28 \+ 28 tokens: ([\d.]+) GFLOP", page)
    assert flops is not None
    update = cost.REPLICA * float(flops[1]) * 1e9 / (9.3e12 * 0.3)
    rows = re.findall(r"^\| (\d+) \| 128 \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    assert [row[0] for row in rows] == ["32", "16", "8", "4", "2", "1"]
    for _, steps, slowest, seconds, hours in rows:
        assert float(seconds) == pytest.approx(int(steps) * update * float(slowest), rel=0.02)
        assert float(hours) == pytest.approx(float(seconds) * 1e4 / 3600, abs=0.1)
    assert float(rows[0][2]) == pytest.approx(cost.waiting(32, 1, 400_000), abs=0.01)
