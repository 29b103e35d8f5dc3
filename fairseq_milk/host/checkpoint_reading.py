"""fairseq's functions that read checkpoints, replaced by ones that read a file once and build only what is allowed.

fairseq reads every checkpoint with a few functions of its own: in `fairseq-train` (to resume, with --restore-file and
--finetune-from-model), `fairseq-generate`, `fairseq-interactive`, `fairseq-validate` and in Python.  `install` replaces
them by those of this module.  What `load_checkpoint_to_cpu` returns is what was checked: nothing is read a second time.
"""

import contextlib
import os
import warnings
from argparse import Namespace
from contextvars import ContextVar
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.dataclass.utils import (
    convert_namespace_to_omegaconf,
    omegaconf_no_object_check,
    overwrite_args_by_name,
)
from fairseq.file_io import PathManager
from omegaconf import OmegaConf

from ..console.errors import UserError, reason, system_error
from .allowed_parts import is_ours, require_allowed_parts
from .archives import load_archive_file
from .checkpoint_file import read_checkpoint
from .configuration import ConfigurationError, plain_configuration
from .resuming import changed_options, compare_options, ranks_exchange_state, require_fitting_moments, require_resumable

# whether fairseq is about to build what the configuration of a checkpoint names
_builds: ContextVar[bool] = ContextVar("_builds", default=False)
# where a training that is about to go on keeps what was read
_resumed: ContextVar[Optional[Dict[str, Any]]] = ContextVar("_resumed", default=None)


def load_checkpoint_to_cpu(
    path: str, arg_overrides: Optional[Dict[str, Any]] = None, load_on_all_ranks: bool = False
) -> Dict[str, Any]:
    """fairseq's function of this name: the state of a checkpoint, as data, with a configuration to build from."""
    state: Dict[str, Any] = read_checkpoint(_local_path(path, load_on_all_ranks))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of hydra, about the defaults of fairseq
            state.update(cfg=_configuration(state), args=None)
            if arg_overrides is not None:
                overwrite_args_by_name(state["cfg"], arg_overrides)
            state = checkpoint_utils._upgrade_state_dict(state)
    except ConfigurationError as error:
        raise UserError(f"{path} is refused: {error}") from error
    except Exception as error:  # omegaconf's, hydra's and those of missing or unfit values
        raise UserError(f"{path} is not of a version of fairseq that this one can read: {reason(error)}") from error
    resumed = _resumed.get()
    if resumed is not None:
        require_resumable(state, path)
        resumed.update(path=path, cfg=state["cfg"], task_state=state.get("task_state"))
    return state


def _local_path(path: str, load_on_all_ranks: bool) -> str:
    """As fairseq does it: the local copy of a remote file may be old and is fetched again."""
    local: str = PathManager.get_local_path(path)
    if local != path and PathManager.path_requires_pathmanager(path):
        with contextlib.suppress(FileNotFoundError):
            os.remove(local)
        if load_on_all_ranks:
            torch.distributed.barrier()
        local = PathManager.get_local_path(path)
    return local


def _configuration(state: Dict[str, Any]) -> Any:
    """The one configuration of a checkpoint, as a DictConfig without interpolation.

    A checkpoint from before fairseq 0.10.1 has a Namespace, which becomes its only configuration: another one beside it
    could say something else.
    """
    cfg = state["cfg"] if state.get("args") is None else state["args"]
    plain = plain_configuration(cfg)
    if state.get("args") is not None:
        cfg = convert_namespace_to_omegaconf(Namespace(**plain))
        cfg = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
        plain = plain_configuration(cfg)
    for part in ("model", "task"):
        if not isinstance(plain.get(part), dict):
            raise ConfigurationError(f"its configuration has no {part}")
    if _builds.get():
        require_allowed_parts(plain)
        return OmegaConf.create(plain)
    for part, value in cfg.items():
        if isinstance(value, Namespace):  # of a model of fairseq's own, which wants it so
            plain[part] = Namespace(**plain[part])
    try:
        return OmegaConf.create(plain, flags={"allow_objects": True})
    except TypeError:  # omegaconf 2.0, of fairseq 0.12.2
        with omegaconf_no_object_check():
            return OmegaConf.create(plain)


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
    """fairseq's `load_model_ensemble_and_task`, one file after the other, so that the one at fault can be named.

    Only where the caller has set up another task than ours are the models of fairseq itself built.  state: as
    `load_checkpoint_to_cpu` returns it inside of `building`.
    """
    assert state is None or len(filenames) == 1
    models: List[Any] = []
    cfg = None
    with building(task is None or is_ours(type(task))):
        for path in filenames:
            with at_fault(path):
                loaded, cfg, task = _load_models([path], arg_overrides, task, strict, suffix, num_shards, state)
                models += loaded
    return models, cfg, task


@contextlib.contextmanager
def building(only_allowed: bool = True) -> Iterator[None]:
    """A checkpoint that is read in the block may only name parts that are allowed, for fairseq will build them."""
    token = _builds.set(only_allowed)
    try:
        yield
    finally:
        _builds.reset(token)


@contextlib.contextmanager
def at_fault(path: str) -> Iterator[None]:
    """Whatever goes wrong becomes a sentence that names this checkpoint."""
    try:
        yield
    except UserError as error:
        if path in str(error):
            raise
        raise UserError(f"{path}: {error}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {system_error(error)}") from error
    except Exception as error:  # fairseq's own, of many kinds
        raise UserError(f"{path} cannot be loaded: {reason(error)}") from error


# ---- resuming -------------------------------------------------------------------------------------------------------

_resume = checkpoint_utils.load_checkpoint


def resume(cfg: Any, trainer: Any, **passthrough: Any) -> Any:
    """fairseq's `load_checkpoint`: takes up a training from a checkpoint that is whole and of the same model."""
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
    """What to say of an error that comes from a checkpoint; None if it is said already, or comes from elsewhere."""
    if isinstance(error, (UserError, MemoryError, torch.cuda.OutOfMemoryError)):
        return None
    hidden = error.__context__
    if isinstance(hidden, UserError):  # fairseq names the file but hides why its parameters are refused
        return f"{str(error).split(';')[0]}: {hidden}"
    if not read:
        return None
    changed = changed_options(read["cfg"], trainer.cfg)
    others = f"; other options: {changed}" if changed else ""
    return f"{read['path']} cannot be resumed from: {reason(error)}{others}"


def install() -> None:
    """From here on fairseq reads checkpoints as above."""
    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu
    checkpoint_utils.load_model_ensemble_and_task = load_models
    checkpoint_utils.load_checkpoint = resume
    file_utils.load_archive_file = load_archive_file
