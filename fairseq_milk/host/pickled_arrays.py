"""Stand-ins for what numpy pickles, so that a checkpoint with arrays is read without calling numpy's own functions.

fairseq saves the counts of --eval-bleu as numpy arrays and scalars.  numpy's `_reconstruct` and `ndarray.__setstate__`
trust what they are given: a forged object array is a segmentation fault.  Here the parts are only kept, and an array of
numbers is made of them once they have been found to fit.
"""

from typing import Any, Dict

import numpy as np

NUMBERS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
MOST_AXES = 8


class PickledType:
    """For numpy.dtype: a type of numbers."""

    def __init__(self, name: Any, *flags: Any) -> None:
        if name not in NUMBERS:
            raise ValueError("it holds an array of something else than numbers")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ("<", "|", "="):
            raise ValueError("it holds an array of another byte order")
        if any(part is not None for part in state[2:5]):
            raise ValueError("it holds an array of records")


class PickledArray:
    """For numpy.ndarray."""

    value: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, raw = state
        if not isinstance(kind, PickledType) or not isinstance(raw, bytes) or not _is_shape(shape):
            raise ValueError("it holds a damaged array")
        if int(np.prod([int(size) for size in shape], dtype=object)) * kind.dtype.itemsize != len(raw):
            raise ValueError("it holds an array of another size than its data")
        flat = np.frombuffer(raw, dtype=kind.dtype)
        self.value = flat.reshape(shape, order="F" if by_columns is True else "C").copy()


def _is_shape(shape: Any) -> bool:
    sizes = shape if isinstance(shape, tuple) else (None,)
    return len(sizes) <= MOST_AXES and all(type(size) is int and size >= 0 for size in sizes)


def reconstruct(kind: Any, shape: Any, code: Any) -> PickledArray:
    """For numpy's `_reconstruct`, which makes the array that `__setstate__` then fills."""
    if kind is not PickledArray:
        raise ValueError("it holds a damaged array")
    return PickledArray()


def scalar(kind: Any, raw: Any) -> Any:
    """For numpy's `scalar`: the number, as Python's own."""
    if not isinstance(kind, PickledType) or not isinstance(raw, bytes) or len(raw) != kind.dtype.itemsize:
        raise ValueError("it holds a damaged number")
    return np.frombuffer(raw, dtype=kind.dtype)[0].item()


NAMES: Dict[str, Any] = {
    "numpy.dtype": PickledType,
    "numpy.ndarray": PickledArray,
    **{f"numpy.{core}.multiarray._reconstruct": reconstruct for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": scalar for core in ("core", "_core")},
}
