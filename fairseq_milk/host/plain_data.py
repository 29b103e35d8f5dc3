"""Copies the content of a checkpoint to plain data: containers, numbers, strings, tensors and numeric arrays.

Everything else is refused or dropped: subclasses of dictionaries, containers that contain themselves, and data that is
small in the file but unbounded when traversed.
"""

from argparse import Namespace
from collections import OrderedDict
from typing import Any

import torch

from .pickled_arrays import PickledArray

DEEPEST = 40  # nesting of containers
MOST = 300_000  # number of values: an optimiser has a few per parameter, and a model some thousand parameters
LEAVES = (type(None), bool, int, float, complex, str, bytes, torch.Size, torch.dtype, torch.device)


class NotPlainError(ValueError):
    """What was found, as a phrase that follows the name of the file."""


def plain(value: Any) -> Any:
    """A copy of the data in new containers; NotPlainError if it is not plain."""
    return _Copier().copy(value, 0)


class _Copier:
    left = MOST  # values that may still be copied

    def copy(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise NotPlainError(f"it holds more than {MOST} values")
        if depth > DEEPEST:
            raise NotPlainError(f"it is nested more than {DEEPEST} deep, or holds itself")
        if isinstance(value, torch.Tensor):
            return _tensor(value)
        if type(value) in LEAVES:
            return value
        if isinstance(value, PickledArray):
            return value.value
        return self._container(value, depth + 1)

    def _container(self, value: Any, depth: int) -> Any:
        if type(value) in (dict, OrderedDict):
            copied = type(value)((self._key(key, depth), self.copy(item, depth)) for key, item in dict.items(value))
            metadata = vars(value).get("_metadata") if type(value) is OrderedDict else None
            if metadata is not None:  # version numbers of modules, written by torch
                copied._metadata = self.copy(metadata, depth)
            return copied
        if type(value) in (list, tuple, set):
            return type(value)([self.copy(item, depth) for item in value])
        if type(value) is Namespace:
            items = vars(value).items()
            return Namespace(**{str(key): self.copy(item, depth) for key, item in items})
        raise NotPlainError(f"it holds a {type(value).__name__}, which is not plain data")

    def _key(self, key: Any, depth: int) -> Any:
        if type(key) not in (str, int, float, bool, tuple, type(None)):
            raise NotPlainError(f"it holds a dictionary with a {type(key).__name__} as a key")
        return self.copy(key, depth)


def _tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, if it is dense, in memory, and not larger than its storage."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise NotPlainError(f"it holds a {type(tensor).__name__}, which is not a plain tensor")
    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        raise NotPlainError("it holds a tensor that is sparse, quantised or without data")
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise NotPlainError("it holds a tensor that is larger than its data")
    return tensor
