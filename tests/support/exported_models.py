"""Exported folders of tiny random models, without a training: one per mechanism, written once per run of the tests."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, NamedTuple

import torch

from fairseq_milk.live import TextOptions
from fairseq_milk.live.checkpoint import CheckpointModel
from fairseq_milk.live.exporting import write_folder
from tests.support import tiny_models as tiny

WORDS = 30


class Exported(NamedTuple):
    folder: Path
    checkpoint: CheckpointModel  # what it was made of


class ExportedModels:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: Dict[str, Exported] = {}

    def get(self, mechanism: str, int8: bool = False) -> Exported:
        name = f"{mechanism}-int8" if int8 else mechanism
        if name not in self.made:
            torch.manual_seed(3)
            sizes: Dict[str, Any] = dict(encoder_layers=2, decoder_layers=3, wait_k=2, chunk_size=2)
            model = tiny.model(words=WORDS, attention=mechanism, **sizes).eval()
            folder = self.folder / name
            folder.mkdir()
            write_folder(folder, model, task_of(model), "", TextOptions(), int8, {"updates": 0})
            self.made[name] = Exported(folder, CheckpointModel(model, mechanism))
        return self.made[name]


def task_of(model: Any) -> Any:
    """What an export asks of a task."""
    languages = SimpleNamespace(source_lang="de", target_lang="en")
    dictionaries = {"source_dictionary": model.encoder.dictionary, "target_dictionary": model.decoder.dictionary}
    return SimpleNamespace(cfg=languages, **dictionaries)
