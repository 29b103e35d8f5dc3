"""Converts lists, numpy arrays and torch tensors to the lists that pictures are drawn from."""

from typing import TYPE_CHECKING, Any, Iterable, Sequence, Union

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Strings = Union[Sequence[str], np.ndarray]
Integers = Union[Sequence[int], np.ndarray, "Tensor"]
Booleans = Union[Sequence[bool], np.ndarray, "Tensor"]
Matrix = Union[Sequence[Sequence[float]], Sequence[np.ndarray], Sequence["Tensor"], np.ndarray, "Tensor"]


def as_lists(values: Any) -> Any:
    """The values as Python lists and scalars; tensors may be on a GPU or require gradients."""
    if hasattr(values, "tolist"):
        return values.tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        return values
    return [as_lists(value) for value in values]
