"""Live translation with a checkpoint; needs torch and fairseq."""

import threading
from typing import TYPE_CHECKING, Any, Dict, List

from ..attention import name_of
from ..console.errors import UserError, first_line
from ..generation.loading import load_model, load_words
from ..generation.schedule import Written
from ..generation.session import StreamingSession
from ..text.encoders import Moses
from .knobs import Knob, Settings, knobs_of
from .translator import Languages, Translator

if TYPE_CHECKING:
    from .loading import TextOptions


class CheckpointModel:
    """A model in torch.  One session computes at a time, because threshold and k are attributes of the mechanism."""

    def __init__(self, model: Any, description: str) -> None:
        self.model, self.description = model, description
        attention = model.decoder.attention
        self.mechanism = name_of(attention) or "unnamed"
        self.knobs: Dict[str, Knob] = knobs_of(attention.learned, attention.stop.k)
        self.lock = threading.Lock()

    def begin(self, settings: Settings) -> "CheckpointSession":
        return CheckpointSession(self, settings)


class CheckpointSession(StreamingSession):
    """A streaming session with its own threshold or k."""

    def __init__(self, owner: CheckpointModel, settings: Settings) -> None:
        super().__init__(owner.model, settings.options)
        self.owner, self.settings = owner, settings

    def push(self, token: int) -> List[Written]:
        stop = self.owner.model.decoder.attention.stop
        with self.owner.lock:
            for knob in stop.knobs:
                setattr(stop, knob, getattr(self.settings, knob))
            return super().push(token)


def load_checkpoint(checkpoint: str, data: str, text: "TextOptions", device: str) -> Translator:
    """The translator of a checkpoint and the directory of its data."""
    model, task = load_model(checkpoint, data)
    if not model.encoder.incremental:
        raise UserError(f"{checkpoint} has a bidirectional encoder, which needs the whole source: it cannot stream")
    model = to_device(model, device)
    languages = Languages(task.cfg.source_lang, task.cfg.target_lang)
    options = text.moses_no_dash_splits, text.moses_no_escape
    moses = None if text.tokenizer is None else Moses(*languages, *options)
    source, target = load_words(task, data, text.bpe_codes, moses, text.sentencepiece_model)
    return Translator(CheckpointModel(model, describe(model, languages)), source, target, languages)


def to_device(model: Any, device: str) -> Any:
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"the model cannot run on --device {device}: {first_line(error)}") from error


def describe(model: Any, languages: Languages) -> str:
    """One line with languages, mechanism and size."""
    name = name_of(model.decoder.attention)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return f"{languages.source}-{languages.target} {name}, {parameters / 1e6:.1f}M parameters"
