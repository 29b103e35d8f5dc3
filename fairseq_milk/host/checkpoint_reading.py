"""Checkpoints are read as data: a file that holds anything else, or is incomplete, is refused.

fairseq reads every checkpoint with a few functions of its own: in `fairseq-train` (to resume, with --restore-file and
--finetune-from-model), `fairseq-generate`, `fairseq-interactive`, `fairseq-validate` and in Python.  `install` replaces
them by those of this module.
"""

import argparse
import collections
import contextlib
import os
import pickle
import re
import typing
import warnings

import numpy as np
import omegaconf
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed.utils import _TensorPlaceholder
from fairseq.file_io import PathManager

from ..console.errors import UserError, first_line, reason, system_error

# ---- what a checkpoint may hold ----------------------------------------------------------------------------------

# of numpy: what rebuilds arrays and scalars
NUMPY_FUNCTIONS: typing.List[typing.Any] = [np.empty(0).__reduce__()[0], np.float64(0).__reduce__()[0]]
CLASSES: typing.List[typing.Any] = [
    # the configuration: a Namespace in models without a dataclass, omegaconf where ranks exchange a checkpoint
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
    # the meters of --eval-bleu: numpy arrays and scalars
    np.ndarray,
    np.dtype,
    *NUMPY_FUNCTIONS,
    *(type(np.dtype(kind)) for kind in ("i4", "i8", "f4", "f8")),
    *([omegaconf.base.Metadata] if hasattr(omegaconf.base, "Metadata") else []),
]
OLD_NAMES = [(function, f"numpy.core.multiarray.{function.__name__}") for function in NUMPY_FUNCTIONS]  # numpy < 2
REBUILDERS = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter")  # of torch's tensors
# torch >= 2.6 loads `weights_only`, plain data and tensors, and can be told which further classes are data
HAS_ALLOW_LIST = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)


def allow_fairseq_checkpoints() -> None:
    """Allow-list exactly `CLASSES`.  What carries anything else, and with it possibly code, is still refused."""
    if HAS_ALLOW_LIST:
        torch.serialization.add_safe_globals(CLASSES + OLD_NAMES)


class DataPickle:
    """Python's pickle restricted to the same classes, for an older torch."""

    names = {
        "collections.OrderedDict",
        *(f"{kind.__module__}.{getattr(kind, '__qualname__', 'Any')}" for kind in CLASSES),
        *(f"__builtin__.{kind.__name__}" for kind in (dict, int, list)),  # as Python 2 called them, and so does torch
        *(name for _, name in OLD_NAMES),
        "_codecs.encode",  # how numpy's bytes are written; torch's own list has it
        *(f"torch._utils.{name}" for name in REBUILDERS),  # torch finds its storages itself
        "torch.Size",
        "torch.device",
    }

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> typing.Any:
            if f"{module}.{name}" not in DataPickle.names:
                raise pickle.UnpicklingError(f"unsupported GLOBAL {module}.{name}")
            return super().find_class(module, name)

    @classmethod
    def load(cls, file: typing.Any, **options: typing.Any) -> typing.Any:
        return cls.Unpickler(file, **options).load()


def load_with_data_pickle(path: str) -> typing.Any:
    """The two halves of an older `torch.load`, called one by one: the whole of 1.13 ignores its `pickle_module`."""
    torch_files = torch.serialization
    with open(path, "rb") as file:
        if not torch_files._is_zipfile(file):
            return torch_files._legacy_load(file, "cpu", DataPickle, encoding="utf-8")
        with torch_files._open_zipfile_reader(file) as records:
            return torch_files._load(records, "cpu", DataPickle, encoding="utf-8")


def load_data(path: str) -> typing.Any:
    """What torch has saved, if it is nothing but data, whatever torch's version and its environment would allow."""
    return torch.load(path, map_location="cpu", weights_only=True) if HAS_ALLOW_LIST else load_with_data_pickle(path)


# ---- reading -----------------------------------------------------------------------------------------------------

_load = checkpoint_utils.load_checkpoint_to_cpu


def check_checkpoint(path: str) -> None:
    """UserError for a file that is not a whole checkpoint of `fairseq-train`, or that holds anything but data."""
    if os.path.getsize(path) == 0:
        raise UserError(f"{path} is empty: it is no checkpoint")
    try:
        state = load_data(path)
    except Exception as error:  # torch, pickle and zipfile each have their own
        code = re.search(r"GLOBAL (\S+)", str(error))
        if code is not None:
            raise UserError(f"{path} is refused: it holds {code.group(1)}, which may run code") from error
        raise UserError(f"{path} is no checkpoint, or only a part of one: {first_line(error)}") from error
    if not isinstance(state, dict) or not has_names(state.get("model")):
        raise UserError(f"{path} is no checkpoint of fairseq-train: it has no parameters")
    if state.get("cfg") is None and state.get("args") is None:
        raise UserError(f"{path} is no checkpoint of fairseq-train: it has no configuration")


def has_names(parameters: typing.Any) -> bool:
    return isinstance(parameters, dict) and all(isinstance(name, str) for name in parameters)


def load_data_only(path: str, *args: typing.Any, **kwargs: typing.Any) -> typing.Dict[str, typing.Any]:
    """fairseq's `load_checkpoint_to_cpu`, once the file is known to be harmless.  It is read twice.

    What fairseq would build from the Namespace of an old checkpoint becomes its only configuration: another one beside
    it could say something else.
    """
    local = PathManager.get_local_path(path)
    if os.path.isfile(local):
        check_checkpoint(local)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of hydra, about the defaults of fairseq
            state: typing.Dict[str, typing.Any] = _load(path, *args, **kwargs)
            if state.get("args") is not None:
                state.update(cfg=convert_namespace_to_omegaconf(state["args"]), args=None)
    except (AttributeError, LookupError, TypeError, ValueError, omegaconf.errors.OmegaConfBaseException) as error:
        raise UserError(f"{path} is not of a version of fairseq that this one can read: {reason(error)}") from error
    for part in ("model", "task"):
        if not omegaconf.OmegaConf.is_dict(state["cfg"]) or part not in state["cfg"] or state["cfg"][part] is None:
            raise UserError(f"{path} is no checkpoint of fairseq-train: its configuration has no {part}")
    return state


_load_models = checkpoint_utils.load_model_ensemble_and_task


def load_models(
    filenames: typing.Sequence[str],
    arg_overrides: typing.Optional[typing.Dict[str, typing.Any]] = None,
    task: typing.Any = None,
    strict: bool = True,
    suffix: str = "",
    num_shards: int = 1,
    state: typing.Any = None,
) -> typing.Tuple[typing.List[typing.Any], typing.Any, typing.Any]:
    """fairseq's `load_model_ensemble_and_task`, one file after the other, so that the one at fault can be named."""
    assert state is None or len(filenames) == 1
    models: typing.List[typing.Any] = []
    cfg = None
    for path in filenames:
        with at_fault(path):
            loaded, cfg, task = _load_models([path], arg_overrides, task, strict, suffix, num_shards, state)
            models += loaded
    return models, cfg, task


@contextlib.contextmanager
def at_fault(path: str) -> typing.Iterator[None]:
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


_resume = checkpoint_utils.load_checkpoint


def resume(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
    """fairseq's `load_checkpoint`, which names the file but hides why its parameters are refused."""
    try:
        return _resume(*args, **kwargs)
    except Exception as error:
        hidden = error.__context__
        if isinstance(error, UserError) or not isinstance(hidden, UserError):
            raise
        raise UserError(f"{str(error).split(';')[0]}: {hidden}") from error


def install() -> None:
    """From here on fairseq reads checkpoints as above."""
    allow_fairseq_checkpoints()
    checkpoint_utils.load_checkpoint_to_cpu = load_data_only
    checkpoint_utils.load_model_ensemble_and_task = load_models
    checkpoint_utils.load_checkpoint = resume
