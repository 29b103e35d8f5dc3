"""What fairseq may build from the configuration of a checkpoint: parts of this plugin, and a few of its own by name.

Many models, tasks and criteria of fairseq evaluate their options as Python, and some tokenisers load an address: with
these a checkpoint of nothing but data would run code.  The parts below do not.
"""

import ast
from typing import Any, Dict, Mapping, Optional, Set

from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from ..console.errors import UserError
from .configuration import ConfigurationError

# of fairseq's own, beside those of this plugin
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
NAMES = {"task": ("_name", "task"), "model": ("_name", "arch")}  # where fairseq looks for the name; else _name
REQUIRED = ("task", "model")
NO_CHOICE = ("", None)
SENTENCE = (
    "'{}' is not a model of fairseq_milk (--arch milk_rnmt and its sizes): use --task translation for fairseq's own"
)


def require_allowed_parts(cfg: Dict[str, Any]) -> None:
    """ConfigurationError unless every part that fairseq would build of this plain configuration is allowed.

    Afterwards each part has one name, under `_name`, which fairseq looks at first or alone.
    """
    for part in FAIRSEQ:
        options = cfg.get(part)
        if options in NO_CHOICE and part not in REQUIRED:
            continue
        if not isinstance(options, (dict, str)) or (part in REQUIRED and not isinstance(options, dict)):
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
    found = {options[key] for key in NAMES.get(part, ("_name",)) if isinstance(options.get(key), str)}
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
    return name in FAIRSEQ[part] or is_ours(_registry(part).get(name))


def is_ours(kind: Optional[type]) -> bool:
    """Whether a class is not one of fairseq itself, but of this plugin or another that the user has imported."""
    return kind is not None and kind.__module__.partition(".")[0] != "fairseq"


def _registry(part: str) -> Mapping[str, Any]:
    registries = {"task": TASK_REGISTRY, "model": ARCH_MODEL_REGISTRY}
    registry: Mapping[str, Any] = registries[part] if part in registries else REGISTRIES[part]["registry"]
    return registry


def _require_harmless_values(cfg: Mapping[str, Any]) -> None:
    """fairseq's Adam evaluates its betas, its encoders fetch addresses, and --eval-bleu builds a tokeniser."""
    for part in ("bpe", "tokenizer"):
        for key, value in cfg[part].items() if isinstance(cfg.get(part), dict) else ():
            if isinstance(value, str) and "://" in value:
                raise ConfigurationError(f"its {part} has an address in {key}")
    optimizer = cfg.get("optimizer")
    for key, value in optimizer.items() if isinstance(optimizer, dict) else ():
        if isinstance(value, str) and key.endswith("betas") and not _is_literal(value):
            raise ConfigurationError(f"its optimizer has code in {key}")
    detokenizer = cfg["task"].get("eval_bleu_detok")
    if detokenizer not in (*NO_CHOICE, *FAIRSEQ["tokenizer"]):
        raise ConfigurationError(f"its tokenizer '{detokenizer}' is not one that a checkpoint may ask for")


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def require_our_model(cfg: Any) -> None:
    """UserError unless --arch, in the options of a command, names a model of this plugin."""
    name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
    if name is None and OmegaConf.is_config(cfg) and len(cfg) == 1:
        name = next(iter(cfg))  # of a folder of fairseq-hydra-train
    if not is_allowed("model", str(name)):
        raise UserError(SENTENCE.format(name))
