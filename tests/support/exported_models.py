"""Exported folders of tiny random models, without a training: one per kind, written once per run of the tests."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, NamedTuple

import pytest
import torch

from fairseq_milk.live import TextOptions
from fairseq_milk.live.checkpoint import CheckpointModel
from fairseq_milk.live.exporting import write_folder
from fairseq_milk.live.tracing import can_trace
from tests.support.tiny_models import Kind
from tests.support.torch_features import NO_EXPORT

WORDS = 30
TWO_AND_THREE = {"encoder_layers": 2, "decoder_layers": 3}


class Exported(NamedTuple):
    folder: Path
    checkpoint: CheckpointModel  # what it was made of


class ExportedModels:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: Dict[str, Exported] = {}

    def get(self, kind: Kind, int8: bool = False) -> Exported:
        if not can_trace():
            pytest.skip(NO_EXPORT)
        name = f"{kind}-{'int8' if int8 else 'float32'}"
        if name not in self.made:
            torch.manual_seed(3)
            layers = {"encoder_layers": 1, "decoder_layers": 2} if kind.heads else TWO_AND_THREE
            bias = 2.0 if kind.schedules > 1 else 0.0
            model = kind.build(words=WORDS, energy_bias=bias, **layers).eval()
            folder = self.folder / name
            folder.mkdir()
            write_folder(folder, model, task_of(model), "", TextOptions(), int8, {"updates": 0})
            self.made[name] = Exported(folder, CheckpointModel(model, kind.attention))
        return self.made[name]


def task_of(model: Any) -> Any:
    """The part of a task that an export uses."""
    languages = SimpleNamespace(source_lang="de", target_lang="en")
    dictionaries = {"source_dictionary": model.encoder.dictionary, "target_dictionary": model.decoder.dictionary}
    return SimpleNamespace(cfg=languages, **dictionaries)
