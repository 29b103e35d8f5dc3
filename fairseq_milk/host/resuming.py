"""Resuming a training: its state must be complete, and its options must match those of the checkpoint."""

import argparse
import collections
import logging
import math
import typing
from contextlib import nullcontext
from numbers import Real
from typing import Any, ContextManager, Dict, List

import numpy as np
import omegaconf
import torch
from fairseq.distributed.utils import _TensorPlaceholder
from omegaconf import OmegaConf

from ..console.errors import UserError, printable

logger = logging.getLogger(__name__)

METERS = ("AverageMeter", "SumMeter", "TimeMeter", "StopwatchMeter", "ConcatTensorMeter")  # fairseq would call any name
MOMENTS = ("exp_avg", "exp_avg_sq")  # state of Adam and Adafactor with the shape of a parameter
SETTINGS = ("lr", "betas", "eps", "weight_decay")  # of an optimiser, which takes them up from a checkpoint
LENGTH = ("max_update", "max_epoch")  # a training may be extended
COMPARED = ("model", "criterion", "optimizer", "lr_scheduler")
# model options that only affect training; all others determine the meaning of its parameters
ABOUT_TRAINING = ("noise", "noise_ramp", "head_after", "energy_bias", "product_precision")
# Classes in the state that ranks send to one another in torch's format, besides plain data.
EXCHANGED: List[Any] = [
    argparse.Namespace,
    collections.defaultdict,
    dict,
    int,
    list,
    typing.Any,
    omegaconf.DictConfig,
    omegaconf.ListConfig,
    omegaconf.base.ContainerMetadata,
    omegaconf.nodes.AnyNode,
    _TensorPlaceholder,
    np.ndarray,
    np.dtype,
    np.empty(0).__reduce__()[0],
    np.float64(0).__reduce__()[0],
    *(type(np.dtype(kind)) for kind in ("i4", "i8", "f4", "f8")),
    *([omegaconf.base.Metadata] if hasattr(omegaconf.base, "Metadata") else []),
]


def ranks_exchange_state() -> ContextManager[None]:
    """During the block ranks may load the state that another rank of this training has read."""
    safe_globals: Any = getattr(torch.serialization, "safe_globals", None)  # of torch 2.5
    return nullcontext() if safe_globals is None else safe_globals(EXCHANGED)


# ---- the state ------------------------------------------------------------------------------------------------------


def require_resumable(state: Dict[str, Any], path: str) -> None:
    """Raise a UserError for a state with which fairseq would fail, now or some updates later."""
    problem = _history(state.get("optimizer_history")) or _extra(state.get("extra_state"))
    if problem:
        raise UserError(f"{path} is damaged: {problem}; resume from an earlier checkpoint")


def _history(history: Any) -> str:
    last = history[-1] if isinstance(history, list) and history else None
    names = ("criterion_name", "optimizer_name")
    if not isinstance(last, dict) or not all(isinstance(last.get(name), str) for name in names):
        return "its history of optimisers is invalid"
    if not _is_count(last.get("num_updates")):
        return f"its number of updates is {_shown(last.get('num_updates'))}"
    schedule = last.get("lr_scheduler_state")
    if not isinstance(schedule, dict) or not _is_number(schedule.get("best")):
        return "the state of its learning rate is invalid"
    return ""


def _extra(extra: Any) -> str:
    iterator = extra.get("train_iterator") if isinstance(extra, dict) else None
    if not isinstance(iterator, dict) or not _is_count(iterator.get("epoch")) or iterator["epoch"] < 1:
        return "its position in the data is missing"
    if not _is_count(iterator.get("iterations_in_epoch", 0)) or not _is_count(iterator.get("version", 1)):
        return "its position in the data is not a number of batches"
    if not isinstance(iterator.get("shuffle", True), bool):
        return "its position in the data is invalid"
    for name in ("best", "val_loss", "previous_training_time"):
        if not _is_figure(extra.get(name)):  # a tensor if it was summed over ranks
            return f"its {name} is {_shown(extra[name])}"
    return _meters(extra.get("metrics"))


def _meters(metrics: Any) -> str:
    groups = {} if metrics is None else metrics
    if not isinstance(groups, dict) or not all(isinstance(group, list) for group in groups.values()):
        return "its statistics are invalid"
    for meter in (meter for group in groups.values() for meter in group):
        if not isinstance(meter, (list, tuple)) or len(meter) != 4:
            return "its statistics are invalid"
        priority, key, kind, values = meter
        if not _is_number(priority) or not isinstance(key, str) or kind not in METERS or not isinstance(values, dict):
            return f"its statistics have a {_shown(kind)}"
        if not all(_is_figure(value) for value in values.values()):
            return f"its statistic {_shown(key)} is not a number"
    return ""


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**40


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, Real) and not isinstance(value, bool))


def _is_figure(value: Any) -> bool:
    return _is_number(value) or isinstance(value, (torch.Tensor, np.ndarray))


def _shown(value: Any) -> str:
    try:
        return repr(value)[:40]
    except ValueError:  # a number of thousands of digits
        return "beyond all bounds"


def require_fitting_moments(trainer: Any, path: str) -> None:
    """Raise a UserError unless the loaded state of the optimiser is whole and has the shapes of the parameters."""
    optimizer: Any = getattr(trainer._optimizer, "optimizer", None)
    for group in getattr(optimizer, "param_groups", ()):
        missing = [name for name in SETTINGS if name in optimizer.defaults and name not in group]
        if missing or not all(_is_setting(value) for name, value in group.items() if name != "params"):
            raise UserError(f"{path} is damaged: the settings of its optimiser are not whole")
    for parameter, values in getattr(optimizer, "state", {}).items():
        if isinstance(values, dict) and not _is_setting(values.get("step")):
            raise UserError(f"{path} is damaged: its optimiser has not counted its steps")
        for name in MOMENTS:
            moment = values.get(name) if isinstance(values, dict) else None
            if moment is None:
                continue
            if not isinstance(moment, torch.Tensor) or moment.shape != parameter.shape:
                raise UserError(f"{path} is damaged: the state of its optimiser does not fit the parameters")
            if not torch.isfinite(moment).all():
                raise UserError(f"{path} is damaged: the state of its optimiser is not finite")


def _is_setting(value: Any) -> bool:
    """Whether the value is None, a bool, a finite number or a sequence of these; others fail in the next update."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_setting, value))
    if isinstance(value, torch.Tensor):
        return bool(torch.isfinite(value).all())
    return value is None or (isinstance(value, (int, float)) and abs(value) < math.inf)


# ---- the options ----------------------------------------------------------------------------------------------------


def compare_options(saved: Any, trainer: Any, path: str) -> None:
    """Log the options that differ from those of the checkpoint; UserError if they change the meaning of parameters.

    Not if the optimiser is reset, which means that another training is intended.
    """
    checkpoint = trainer.cfg.checkpoint
    anew = checkpoint.reset_optimizer or path == checkpoint.finetune_from_model
    model = _changed(saved, trainer.cfg, "model")
    meaning = [text for name, text in model.items() if name not in ABOUT_TRAINING and "dropout" not in name]
    if meaning and not anew:
        raise UserError(
            f"{path} is of another model than the options describe: {', '.join(meaning)}; leave them as they were, or "
            "give --reset-optimizer to train the parameters on in the new model"
        )
    changed = changed_options(saved, trainer.cfg)
    if changed:
        logger.warning(printable(f"resuming from {path} with other options than it was trained with: {changed}"))


def changed_options(saved: Any, cfg: Any) -> str:
    """The options that differ, like '--noise 1.0 (was 4.0), --lr-scheduler fixed (was rnmt_plus)'; else empty."""
    texts = (text for part in COMPARED for text in _changed(saved, cfg, part).values())
    return ", ".join(dict.fromkeys(texts))


def _changed(saved: Any, cfg: Any, part: str) -> Dict[str, str]:
    """The options of one part that both have and that differ, for example '--noise 1.0 (was 4.0)'."""
    before, now = (_options(config, part) for config in (saved, cfg))
    return {
        name: f"--{(part if name == '_name' else name).replace('_', '-')} {now[name]} (was {value})"
        for name, value in before.items()
        if name in now and now[name] != value and name not in LENGTH and (name, part) != ("_name", "model")
    }


def _options(cfg: Any, part: str) -> Dict[str, Any]:
    options = OmegaConf.select(cfg, part)
    if not OmegaConf.is_config(options):
        return {}
    values = OmegaConf.to_container(options, resolve=True, enum_to_str=True)
    return {str(name): value for name, value in values.items()} if isinstance(values, dict) else {}
