"""Checkpoints written before the attention was split into stops and lookbacks still load and give the same output.

`support/old_checkpoints/e45763e.json` was written by commit e45763e: for each mechanism the names and shapes of
all parameters, in order, and the output of a model with the weights of `fill` for a batch.
"""

import json
from pathlib import Path
from typing import Any, Dict

import pytest
import torch

from tests.support import tiny_models as tiny

BEFORE: Dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "support" / "old_checkpoints" / "e45763e.json").read_text()
)


def built(attention: str) -> Any:
    sizes: Dict[str, Any] = dict(encoder_layers=2, decoder_layers=2, energy_bias=-0.5, head_pace=2.0)
    return tiny.model(attention=attention, spread=0.0, **sizes).double().eval()


def fill(name: str, shape: Any) -> torch.Tensor:
    """Weights that need no random numbers."""
    special = {"decoder.attention.head.r": -1.85, "decoder.attention.head.g": 3.0}
    count = int(torch.Size(shape).numel())
    values = torch.sin(1.7 * torch.arange(count, dtype=torch.float64) ** 1.5 + len(name))
    return torch.full(shape, special[name], dtype=torch.float64) if name in special else values.view(shape)


def test_the_fixture_has_all_five_mechanisms() -> None:
    assert tuple(BEFORE) == tiny.FIVE


@pytest.mark.parametrize("attention", tiny.FIVE)
def test_parameters_keep_their_names_shapes_and_order(attention: str) -> None:
    """The order too: an optimiser's state has no names."""
    parameters = [(name, list(p.shape)) for name, p in built(attention).named_parameters()]
    assert parameters == list(BEFORE[attention]["parameters"].items())


@pytest.mark.parametrize("attention", tiny.FIVE)
@torch.no_grad()
def test_an_old_checkpoint_gives_the_same_output(attention: str) -> None:
    model, before = built(attention), BEFORE[attention]
    model.load_state_dict({name: fill(name, shape) for name, shape in before["parameters"].items()}, strict=True)
    net_input = tiny.batch(tiny.pairs(6))["net_input"]
    hard, schedule = model(**net_input, features_only=True, hard=True)
    soft, _ = model(**net_input, features_only=True, hard=False)
    assert tiny.delays(schedule["alpha"]).tolist() == before["delays"]
    for got, want in ((hard, before["hard"]), (soft, before["expected"])):
        torch.testing.assert_close(got.sum(-1).flatten(), torch.tensor(want, dtype=got.dtype), rtol=0, atol=2e-9)
