"""The five mechanisms and their names."""

from typing import Dict, Type

from .base import AttentionOptions, AttentionOutput, AttentionState, Memory, SimultaneousAttention
from .milk import MilkAttention
from .mocha import MochaAttention
from .monotonic import MonotonicAttention
from .soft import SoftAttention
from .waitk import WaitKAttention

ATTENTIONS: Dict[str, Type[SimultaneousAttention]] = {
    "soft": SoftAttention,
    "monotonic": MonotonicAttention,
    "mocha": MochaAttention,
    "milk": MilkAttention,
    "waitk": WaitKAttention,
}


def build_attention(name: str, options: AttentionOptions) -> SimultaneousAttention:
    """The mechanism of that name."""
    if name not in ATTENTIONS:
        raise ValueError(f"unknown attention {name!r}; choose one of {', '.join(ATTENTIONS)}")
    return ATTENTIONS[name](options)


__all__ = [
    "ATTENTIONS",
    "AttentionOptions",
    "AttentionOutput",
    "AttentionState",
    "Memory",
    "SimultaneousAttention",
    "build_attention",
]
