"""Stand-ins for pickled numpy objects, so that a checkpoint with arrays is read without calling functions of numpy.

fairseq saves the counts of --eval-bleu as numpy arrays and scalars.  numpy's `_reconstruct` and `ndarray.__setstate__`
do not check their arguments: a forged object array causes a segmentation fault.  The stand-ins store the arguments, and
build an array of numbers after checking them.
"""

import math
from typing import Any, Dict

import numpy as np

NUMBERS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
MOST_AXES = 8


class PickledType:
    """Stands in for numpy.dtype: a numeric type."""

    def __init__(self, name: Any, *flags: Any) -> None:
        if name not in NUMBERS:
            raise ValueError("it holds an array of something other than numbers")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ("<", "|", "="):
            raise ValueError("it holds an array of another byte order")
        if any(part is not None for part in state[2:5]):
            raise ValueError("it holds an array of records")


class PickledArray:
    """Stands in for numpy.ndarray."""

    value: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, raw = state
        if not isinstance(kind, PickledType) or not isinstance(raw, bytes) or not _is_shape(shape):
            raise ValueError("it holds a damaged array")
        if math.prod(shape) * kind.dtype.itemsize != len(raw):
            raise ValueError("it holds an array of another size than its data")
        flat = np.frombuffer(raw, dtype=kind.dtype)
        self.value = flat.reshape(shape, order="F" if by_columns is True else "C").copy()


def _is_shape(shape: Any) -> bool:
    sizes = shape if isinstance(shape, tuple) else (None,)
    return len(sizes) <= MOST_AXES and all(type(size) is int and size >= 0 for size in sizes)


def reconstruct(kind: Any, shape: Any, code: Any) -> PickledArray:
    """Stands in for numpy's `_reconstruct`, which creates the array that `__setstate__` fills."""
    if kind is not PickledArray:
        raise ValueError("it holds a damaged array")
    return PickledArray()


def scalar(kind: Any, raw: Any) -> Any:
    """Stands in for numpy's `scalar`: returns a Python number."""
    if not isinstance(kind, PickledType) or not isinstance(raw, bytes) or len(raw) != kind.dtype.itemsize:
        raise ValueError("it holds a damaged number")
    return np.frombuffer(raw, dtype=kind.dtype)[0].item()


NAMES: Dict[str, Any] = {
    "numpy.dtype": PickledType,
    "numpy.ndarray": PickledArray,
    **{f"numpy.{core}.multiarray._reconstruct": reconstruct for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": scalar for core in ("core", "_core")},
}
