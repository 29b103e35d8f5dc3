"""fairseq's checkpoints: which classes may be in one, and that there is never half a one.

torch >= 2.6 loads with `weights_only`: plain data and tensors, no code.  Here it is told which further classes a
fairseq checkpoint holds as data.  Loading stays `weights_only`, so a checkpoint that carries anything else, and with it
possibly code, is still refused.
"""

import argparse
import collections
import typing

import numpy as np
import omegaconf
import torch
from fairseq.distributed.utils import _TensorPlaceholder
from fairseq.file_io import PathManager

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
]
OLD_NAMES = [(function, f"numpy.core.multiarray.{function.__name__}") for function in NUMPY_FUNCTIONS]  # numpy < 2


def allow_fairseq_checkpoints() -> None:
    """Allow-list exactly `CLASSES`, where torch has such a list."""
    if hasattr(torch.serialization, "add_safe_globals"):
        metadata = [omegaconf.base.Metadata] if hasattr(omegaconf.base, "Metadata") else []
        torch.serialization.add_safe_globals(CLASSES + OLD_NAMES + metadata)


_copy = PathManager.copy


def copy_whole(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """fairseq's copy, in two steps: whoever is killed between them leaves the old file as it was."""
    if not (overwrite and PathManager.supports_rename(dst_path)):
        return bool(_copy(src_path, dst_path, overwrite))
    copied = _copy(src_path, f"{dst_path}.tmp", overwrite=True)
    PathManager.rename(f"{dst_path}.tmp", dst_path)
    return bool(copied)


def keep_checkpoints_whole() -> None:
    """fairseq makes checkpoint_last.pt by copying over the old one; a kill would leave nothing to resume from."""
    PathManager.copy = staticmethod(copy_whole)
