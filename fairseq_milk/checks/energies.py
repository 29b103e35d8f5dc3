"""The head's energies, seen and changed from outside."""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, List

from torch import Tensor


@contextmanager
def changed_energies(head: Any, change: Callable[[Tensor], Tensor]) -> Iterator[List[Tensor]]:
    """The head works with change(e) for a while; what it has worked with is collected, (B, J) a target step."""
    used: List[Tensor] = []

    def hook(module: Any, inputs: Any, e: Tensor) -> Tensor:
        used.append(change(e))
        return used[-1]

    handle = head.register_forward_hook(hook)
    try:
        yield used
    finally:
        handle.remove()
