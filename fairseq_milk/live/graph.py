"""A step of a live translation that is to be traced, and how its tensors are named.

The state is explicit: every tensor that a step leaves for later is an output of one graph and an input of another,
under the same name.  What grows by one row per token is an output `key_X`, `value_X` or `h`, (B, D), of which all rows
so far are an input `keys_X`, `values_X` or `memory`, (B, n, D).
"""

from typing import Dict, List, NamedTuple, Sequence

from torch import Tensor, nn

from .manifest import collected

HEAD, SOFT = "head", "soft_energy"  # the energies: the first decides, the second looks back


class Graph(NamedTuple):
    """A module to trace, with examples of its inputs by name and the names of its outputs, both in order."""

    module: nn.Module
    inputs: Dict[str, Tensor]
    lists: Sequence[int]  # after the tensors that the module takes one by one: how many inputs each of its lists takes
    outputs: List[str]


def all_of(rows: Tensor) -> Tensor:
    """n, the length of a memory that has all rows, in operators that `graph_check` allows.  (..., n, D) -> (...)."""
    return 0 * rows[..., 0, 0].long() + rows.size(-2)


def initial_state(steps: Dict[str, Graph]) -> Dict[str, List[int]]:
    """The tensors that are zero before anything was read or written, with their shapes for one sentence."""
    made = {name for graph in steps.values() for name in graph.outputs}
    grown = {collected(name) for name in made}
    state: Dict[str, List[int]] = {}
    for graph in steps.values():
        for name, x in graph.inputs.items():
            if name in made and x.is_floating_point():
                state[name] = [1, *x.shape[1:]]
            elif name in grown:
                state[name] = [1, 0, x.size(2)]
    return state
