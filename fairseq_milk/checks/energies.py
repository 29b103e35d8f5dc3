"""The energies of the heads, seen and changed from outside."""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Sequence

import torch
from torch import Tensor


@contextmanager
def changed_energies(heads: Sequence[Any], change: Callable[[Tensor], Tensor]) -> Iterator[List[Tensor]]:
    """The heads work with change(e) for a while; what they have worked with is collected, see `by_schedule`."""
    used: List[Tensor] = []

    def hook(module: Any, inputs: Any, e: Tensor) -> Tensor:
        used.append(change(e))
        return used[-1]

    handles = [head.register_forward_hook(hook) for head in heads]
    try:
        yield used
    finally:
        for handle in handles:
            handle.remove()


def by_schedule(energies: Sequence[Tensor]) -> Tensor:
    """(B, J) of each target step, or (B, H, I, J) of each layer -> (B, S, I, J), of each schedule."""
    if energies[0].dim() == 2:
        return torch.stack(list(energies), dim=1).unsqueeze(1)
    return torch.cat(list(energies), dim=1)
