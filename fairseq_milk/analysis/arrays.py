"""What the pictures are drawn from: lists, numpy arrays and torch tensors alike."""

from typing import TYPE_CHECKING, Any, Iterable, Sequence, Union

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Strings = Union[Sequence[str], np.ndarray]
Integers = Union[Sequence[int], np.ndarray, "Tensor"]
Booleans = Union[Sequence[bool], np.ndarray, "Tensor"]
Matrix = Union[Sequence[Sequence[float]], Sequence[np.ndarray], Sequence["Tensor"], np.ndarray, "Tensor"]


def as_lists(values: Any) -> Any:
    """Python's own lists and scalars, whatever the arrays lie on (a GPU, a graph of gradients) or in (lists)."""
    if hasattr(values, "tolist"):
        return values.tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        return values
    return [as_lists(value) for value in values]
