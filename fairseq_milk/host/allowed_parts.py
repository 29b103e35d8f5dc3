"""The parts that fairseq may build from the configuration of a checkpoint: those of this plugin, and a few of fairseq.

Many models, tasks and criteria of fairseq evaluate their options as Python, and some tokenisers load from an address:
with these, a checkpoint that contains only data could run code.  The parts below do not.
"""

import ast
import os
import re
from typing import Any, Dict, Mapping, Optional, Set
from urllib.parse import urlsplit

from fairseq.dataclass.utils import merge_with_parent
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from ..console.errors import UserError, first_line
from .configuration import ConfigurationError

# parts of fairseq, beside those of this plugin
FAIRSEQ: Dict[str, Set[str]] = {
    "task": {"translation"},
    "model": set(),
    "criterion": {"cross_entropy", "label_smoothed_cross_entropy"},
    "optimizer": {"adadelta", "adafactor", "adagrad", "adam", "adamax", "nag", "sgd"},
    "lr_scheduler": {"cosine", "fixed", "inverse_sqrt", "pass_through", "polynomial_decay", "reduce_lr_on_plateau"},
    "tokenizer": {"moses", "space"},
    "bpe": {"sentencepiece", "subword_nmt"},
    "scoring": {"bleu", "chrf", "sacrebleu"},
}
NAMES = {"task": ("_name", "task"), "model": ("_name", "arch")}  # keys of the name, if not _name
REQUIRED = ("task", "model")
NO_CHOICE = ("", None)
SENTENCE = (
    "'{}' is not a model of fairseq_milk (--arch milk_rnmt and its sizes): use --task translation for fairseq's own"
)


def require_allowed_parts(cfg: Dict[str, Any]) -> None:
    """Raise a ConfigurationError unless every part that fairseq would build from this configuration is allowed.

    cfg: has a dictionary for the model and the task.  Afterwards each part has its name under `_name`, where fairseq
    looks first.
    """
    for part in FAIRSEQ:
        options = cfg.get(part)
        if options in NO_CHOICE:
            continue
        if not isinstance(options, (dict, str)):
            raise ConfigurationError(f"its configuration has no {part}")
        cfg[part] = _allowed(part, options)
    _require_harmless_values(cfg)


def _allowed(part: str, options: Any) -> Any:
    if isinstance(options, str):
        _require(part, options)
        return options
    if part == "model" and len(options) == 1 and isinstance(next(iter(options.values())), dict):
        ((name, inner),) = options.items()  # as fairseq-hydra-train writes it
        options = {**inner, "_name": inner.get("_name") or name}
    found = {options[key] for key in NAMES.get(part, ("_name",)) if options.get(key) is not None}
    if not all(isinstance(name, str) for name in found):
        raise ConfigurationError(f"its {part} has a name that is no text")
    if not found:
        if part in REQUIRED:
            raise ConfigurationError(f"its configuration has no name for its {part}")
        return options
    for name in sorted(found):
        _require(part, name)
    if len(found) > 1:
        raise ConfigurationError(f"its {part} has two names, {' and '.join(sorted(found))}")
    rest = {key: value for key, value in options.items() if key not in NAMES.get(part, ())}
    return {**rest, "_name": found.pop()}


def _require(part: str, name: str) -> None:
    if is_allowed(part, name):
        return
    if part == "model":
        raise ConfigurationError(SENTENCE.format(name))
    if part == "task":
        raise ConfigurationError(f"its task is '{name}', not simultaneous_translation or translation")
    raise ConfigurationError(f"its {part.replace('_', ' ')} '{name}' is not one that a checkpoint may ask for")


def is_allowed(part: str, name: str) -> bool:
    registries = {"task": TASK_REGISTRY, "model": ARCH_MODEL_REGISTRY}
    registry = registries[part] if part in registries else REGISTRIES[part]["registry"]
    return name in FAIRSEQ[part] or is_ours(registry.get(name))


def is_ours(kind: Optional[type]) -> bool:
    """Whether a class is from this plugin, or from another one that the user has imported, and not from fairseq."""
    return kind is not None and kind.__module__.partition(".")[0] != "fairseq"


def require_plain_names(args: Mapping[str, Any]) -> None:
    """ConfigurationError unless the names of parts in old options are words: Hydra would take others for files."""
    for part in (*FAIRSEQ, "arch"):
        name = args.get(part)
        if name not in NO_CHOICE and not (isinstance(name, str) and re.fullmatch(r"\w+", name)):
            raise ConfigurationError(f"its {part.replace('_', ' ')} has an invalid name")


def _require_harmless_values(cfg: Dict[str, Any]) -> None:
    """Check options with side effects: fairseq evaluates Adam's betas, opens the files of its encoders and downloads
    from addresses, and builds the tokeniser of --eval-bleu."""
    for part in ("bpe", "tokenizer"):
        for key, value in _texts(cfg.get(part)).items():
            _require_file(part, key, value)
    for key, value in _texts(cfg.get("optimizer")).items():
        if key.endswith("betas") and not _is_literal(value):
            raise ConfigurationError(f"its optimizer has code in {key}")
    detokenizer = cfg["task"].get("eval_bleu_detok")
    if detokenizer not in (*NO_CHOICE, *FAIRSEQ["tokenizer"]):
        raise ConfigurationError(f"its tokenizer '{detokenizer}' is not one that a checkpoint may ask for")
    _require_criterion(cfg.get("criterion"))


def _texts(options: Any) -> Dict[str, str]:
    """The options whose value is a string."""
    items = options.items() if isinstance(options, dict) else ()
    return {key: value for key, value in items if isinstance(value, str)}


def _require_file(part: str, key: str, value: str) -> None:
    """Refuse an address, and a device or a pipe, which has no end.  A missing file is left to the caller to replace."""
    if urlsplit(value).scheme:
        raise ConfigurationError(f"its {part} has an address in {key}")
    if os.path.exists(value) and not os.path.isfile(value):
        raise ConfigurationError(f"its {part} names what is no file in {key}")


def _require_criterion(options: Any) -> None:
    """Check the types of its options now: fairseq-validate builds it when the name of the file is no longer known."""
    kinds = REGISTRIES["criterion"]["dataclass_registry"]
    if not isinstance(options, dict) or options.get("_name") not in kinds:
        return
    try:
        merge_with_parent(kinds[options["_name"]](), OmegaConf.create(options), remove_missing=True)
    except Exception as error:  # omegaconf's
        raise ConfigurationError(f"its criterion cannot be built: {first_line(error)}") from error


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def require_our_model(cfg: Any) -> None:
    """Raise a UserError unless --arch names a model of this plugin."""
    name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
    if name is None and OmegaConf.is_config(cfg) and len(cfg) == 1:
        name = next(iter(cfg))  # in a folder of fairseq-hydra-train
    if not is_allowed("model", str(name)):
        raise UserError(SENTENCE.format(name))
