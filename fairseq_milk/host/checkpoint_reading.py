"""Replaces fairseq's functions that read checkpoints: a file is read once, and only allowed parts are built.

fairseq reads every checkpoint with a few functions of its own: in `fairseq-train` (to resume, with --restore-file and
--finetune-from-model), `fairseq-generate`, `fairseq-interactive`, `fairseq-validate` and in Python.  `install` replaces
them by those of this module.  `load_checkpoint_to_cpu` returns the data that was checked, without reading it again.
"""

import contextlib
import os
import warnings
from argparse import Namespace
from contextvars import ContextVar
from functools import cache
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.dataclass.utils import (
    convert_namespace_to_omegaconf,
    omegaconf_no_object_check,
    overwrite_args_by_name,
)
from fairseq.file_io import PathManager
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from ..console.errors import UserError, reason, system_error
from .allowed_parts import is_ours, require_allowed_parts, require_plain_names
from .archives import load_archive_file
from .checkpoint_file import read_checkpoint
from .configuration import ConfigurationError, plain_configuration
from .model_sizes import require_sizes
from .resuming import changed_options, compare_options, ranks_exchange_state, require_fitting_moments, require_resumable

DECODING = ("generation", "common_eval", "interactive")  # groups of the configuration about commands that decode
# the number of files with the parameters of the model that fairseq is about to build from a checkpoint, which may then
# name allowed parts only; None if fairseq builds nothing that the checkpoint names
_shards: ContextVar[Optional[int]] = ContextVar("_shards", default=None)
# the state that a training is being resumed from
_resumed: ContextVar[Optional[Dict[str, Any]]] = ContextVar("_resumed", default=None)


def load_checkpoint_to_cpu(
    path: str, arg_overrides: Optional[Dict[str, Any]] = None, load_on_all_ranks: bool = False
) -> Dict[str, Any]:
    """Replacement for fairseq's function: the state of a checkpoint as plain data, with its configuration."""
    state: Dict[str, Any] = read_checkpoint(_local_path(path, load_on_all_ranks))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hydra warns about the defaults of fairseq
            state.update(cfg=_configuration(state), args=None)
            if arg_overrides is not None:
                overwrite_args_by_name(state["cfg"], arg_overrides)
            state = checkpoint_utils._upgrade_state_dict(state)
    except ConfigurationError as error:
        raise UserError(f"{path} is refused: {error}") from error
    except Exception as error:  # of omegaconf, hydra, or for missing and invalid values
        raise UserError(f"{path} is of a version of fairseq that this one cannot read: {reason(error)}") from error
    resumed = _resumed.get()
    if resumed is not None:
        require_resumable(state, path)
        resumed.update(path=path, cfg=state["cfg"], task_state=state.get("task_state"))
    return state


def _local_path(path: str, load_on_all_ranks: bool) -> str:
    """The local path, as in fairseq: the local copy of a remote file may be outdated and is fetched again."""
    local: str = PathManager.get_local_path(path)
    if local != path and PathManager.path_requires_pathmanager(path):
        with contextlib.suppress(FileNotFoundError):
            os.remove(local)
        if load_on_all_ranks:
            torch.distributed.barrier()
        local = PathManager.get_local_path(path)
    return local


def _configuration(state: Dict[str, Any]) -> Any:
    """The configuration of a checkpoint as a DictConfig without interpolation.

    The Namespace of a checkpoint from before fairseq 0.10.1 becomes its only configuration, so that there are not two.
    """
    cfg = state["cfg"] if state.get("args") is None else state["args"]
    plain = plain_configuration(cfg)
    if state.get("args") is not None:
        require_plain_names(plain)
        cfg = convert_namespace_to_omegaconf(Namespace(**plain))
        cfg = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
        plain = plain_configuration(cfg)
    for part in ("model", "task"):
        if not isinstance(plain.get(part), dict):
            raise ConfigurationError(f"its configuration has no {part}")
    shards = _shards.get()
    if shards is not None:
        if shards > 1 and "fsdp_metadata" not in state:  # fairseq would take each file for a whole model
            raise ConfigurationError("it is not one of the shards that --ddp-backend fully_sharded writes")
        require_allowed_parts(plain)
        require_sizes(plain["model"], state["model"])
        return OmegaConf.create(_with_defaults(plain))
    for part, value in cfg.items():
        if isinstance(value, Namespace):  # models of fairseq expect it
            plain[part] = Namespace(**plain[part])
    try:
        return OmegaConf.create(plain, flags={"allow_objects": True})
    except TypeError:  # omegaconf 2.0, of fairseq 0.12.2
        with omegaconf_no_object_check():
            return OmegaConf.create(plain)


def _with_defaults(cfg: Dict[str, Any]) -> Dict[str, Any]:
    """The configuration with every group that fairseq looks at afterwards.

    How to decode, from which file and to which folder is not for a checkpoint to say: fairseq-train knows nothing of
    it, and --replace-unk and --input are files that would be read.  Copies of these options in the task go as well, and
    options that the task does not know, of a newer version: fairseq 0.12.2 would stop at them.
    """
    whole: Dict[str, Any] = {**_defaults(), **cfg, **{group: _defaults()[group] for group in DECODING}}
    decoding = {name for group in DECODING for name in _defaults()[group]} - {"_name"}
    options = getattr(TASK_DATACLASS_REGISTRY.get(cfg["task"]["_name"]), "__dataclass_fields__", cfg["task"])
    whole["task"] = {name: cfg["task"][name] for name in cfg["task"] if name in options and name not in decoding}
    for group, default in _defaults().items():
        if isinstance(default, dict) and not isinstance(whole[group], dict):
            raise ConfigurationError(f"its configuration has no {group}")
    return whole


@cache
def _defaults() -> Dict[str, Any]:
    structure: Any = OmegaConf.structured(FairseqConfig)
    defaults: Any = OmegaConf.to_container(structure, resolve=True, enum_to_str=True)
    return {str(group): options for group, options in defaults.items()}


# ---- building -------------------------------------------------------------------------------------------------------

_load_models = checkpoint_utils.load_model_ensemble_and_task


def load_models(
    filenames: Sequence[str],
    arg_overrides: Optional[Dict[str, Any]] = None,
    task: Any = None,
    strict: bool = True,
    suffix: str = "",
    num_shards: int = 1,
    state: Any = None,
) -> Tuple[List[Any], Any, Any]:
    """Replacement for fairseq's `load_model_ensemble_and_task`: one file after the other, so that errors name the file.

    Models of fairseq are built only if the caller has set up a task of fairseq.  state: as returned by
    `load_checkpoint_to_cpu` inside `building`.
    """
    assert state is None or len(filenames) == 1
    models: List[Any] = []
    cfg = None
    with building(task is None or is_ours(type(task)), num_shards):
        for path in filenames:
            with at_fault(path):
                loaded, cfg, task = _load_models([path], arg_overrides, task, strict, suffix, num_shards, state)
                models += loaded
    return models, cfg, task


@contextlib.contextmanager
def building(only_allowed: bool = True, shards: int = 1) -> Iterator[None]:
    """Checkpoints read during the block may only name allowed parts, because fairseq is going to build them."""
    token = _shards.set(shards if only_allowed else None)
    try:
        yield
    finally:
        _shards.reset(token)


@contextlib.contextmanager
def at_fault(path: str) -> Iterator[None]:
    """Errors during the block become a UserError that names this checkpoint."""
    try:
        yield
    except UserError as error:
        if path in str(error):
            raise
        raise UserError(f"{path}: {error}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {system_error(error)}") from error
    except Exception as error:  # fairseq raises many types
        raise UserError(f"{path} cannot be loaded: {reason(error)}") from error


# ---- resuming -------------------------------------------------------------------------------------------------------

_resume = checkpoint_utils.load_checkpoint


def resume(cfg: Any, trainer: Any, **passthrough: Any) -> Any:
    """Replacement for fairseq's `load_checkpoint`: resumes from a checkpoint that is complete and of the same model."""
    read: Dict[str, Any] = {}
    token = _resumed.set(read)
    try:
        with ranks_exchange_state():
            result = _resume(cfg, trainer, **passthrough)
    except Exception as error:
        sentence = _sentence(error, read, trainer)
        if sentence is None:
            raise
        raise UserError(sentence) from error
    finally:
        _resumed.reset(token)
    if read and is_ours(type(trainer.task)):
        with at_fault(read["path"]):
            trainer.task.load_state_dict(read["task_state"] or {})
        require_fitting_moments(trainer, read["path"])
        compare_options(read["cfg"], trainer, read["path"])
    return result


def _sentence(error: Exception, read: Dict[str, Any], trainer: Any) -> Optional[str]:
    """The sentence for an error that comes from a checkpoint; None if it already has one or has another cause."""
    if isinstance(error, (UserError, MemoryError, torch.cuda.OutOfMemoryError)):
        return None
    hidden = error.__context__
    if isinstance(hidden, UserError):  # fairseq names the file but not why its parameters are refused
        return f"{str(error).split(';')[0]}: {hidden}"
    if not read:
        return None
    changed = changed_options(read["cfg"], trainer.cfg)
    others = f"; other options: {changed}" if changed else ""
    return f"{read['path']} cannot be resumed from: {reason(error)}{others}"


def install() -> None:
    """Install the functions of this module in fairseq."""
    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu
    checkpoint_utils.load_model_ensemble_and_task = load_models
    checkpoint_utils.load_checkpoint = resume
    file_utils.load_archive_file = load_archive_file
