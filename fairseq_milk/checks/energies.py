"""Recording and replacing the energies of the heads during a forward pass."""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Sequence

import torch
from torch import Tensor


@contextmanager
def changed_energies(heads: Sequence[Any], change: Callable[[Tensor], Tensor]) -> Iterator[List[Tensor]]:
    """During the block the heads use change(e) instead of e.  Yields the list of these energies; see `by_schedule`."""
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
    """Energies by schedule, (B, S, I, J), from (B, J) per target step or (B, H, I, J) per layer."""
    if energies[0].dim() == 2:
        return torch.stack(list(energies), dim=1).unsqueeze(1)
    return torch.cat(list(energies), dim=1)
