"""fairseq's checkpoints under torch >= 2.6, which loads with `weights_only`: plain data and tensors, no code.

Importing this module tells torch which further classes a fairseq checkpoint holds as data.  Loading stays
`weights_only`, so a checkpoint that carries anything else, and with it possibly code, is still refused.
"""

import argparse
import collections
import typing

import numpy as np
import omegaconf
import torch
from fairseq.distributed.utils import _TensorPlaceholder

CLASSES = [
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
    np.empty(0).__reduce__()[0],
    np.float64(0).__reduce__()[0],
    *(type(np.dtype(kind)) for kind in ("i4", "i8", "f4", "f8")),
]


def allow_fairseq_checkpoints() -> None:
    """Allow-list exactly `CLASSES`, where torch has such a list."""
    if hasattr(torch.serialization, "add_safe_globals"):
        metadata = [omegaconf.base.Metadata] if hasattr(omegaconf.base, "Metadata") else []
        torch.serialization.add_safe_globals(CLASSES + metadata)
