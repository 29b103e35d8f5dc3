"""The mechanisms: each is a pair of a stop (where it stops) and a lookback (how far back it looks)."""

from typing import Dict, List, Optional, Tuple, Type

from .attention import AttentionOutput, Queries, SimultaneousAttention, context
from .lookbacks import Everything, Here, Lookback, Window
from .memory import Heads, Memory
from .options import AttentionOptions
from .stops import THRESHOLD, AttentionState, Bernoulli, FixedStop, ReadAll, Stop, WaitK

Pair = Tuple[Type[Stop], Type[Lookback]]

ATTENTIONS: Dict[str, Pair] = {
    "soft": (ReadAll, Everything),
    "waitk": (WaitK, Everything),
    "monotonic": (Bernoulli, Here),
    "mocha": (Bernoulli, Window),
    "milk": (Bernoulli, Everything),
}


def build_attention(name: str, options: AttentionOptions) -> SimultaneousAttention:
    """Build the mechanism of that name."""
    if name not in ATTENTIONS:
        raise ValueError(f"unknown attention {name!r}; choose one of {', '.join(ATTENTIONS)}")
    return build_pair(ATTENTIONS[name], options)


def build_pair(pair: Pair, options: AttentionOptions) -> SimultaneousAttention:
    """Build an attention from any stop and any lookback, also from pairs without a name."""
    stop, lookback = pair
    return SimultaneousAttention(stop(options), lookback(options), options)


def build_layers(name: str, options: AttentionOptions, count: int) -> List[SimultaneousAttention]:
    """Build the mechanism of that name for several layers, with a shared stop, so that a knob is set once.

    With one schedule the first layer decides and the others follow it; with one schedule per head all layers decide.
    """
    first = build_attention(name, options)
    decide = options.schedule_heads > 1 and first.learned
    rest = range(count - 1)
    return [first, *(SimultaneousAttention(first.stop, first.lookback, options, decide) for _ in rest)]


def name_of(attention: SimultaneousAttention) -> Optional[str]:
    """The name of a mechanism; None if the pair has no name."""
    pair = type(attention.stop), type(attention.lookback)
    return next((name for name, named in ATTENTIONS.items() if named == pair), None)


def having_knob(knob: str) -> List[str]:
    """The names of the mechanisms whose stop has that knob."""
    return [name for name, (stop, _) in ATTENTIONS.items() if knob in stop.knobs]


__all__ = [
    "ATTENTIONS",
    "THRESHOLD",
    "AttentionOptions",
    "AttentionOutput",
    "AttentionState",
    "Bernoulli",
    "Everything",
    "FixedStop",
    "Heads",
    "Here",
    "Lookback",
    "Memory",
    "Pair",
    "Queries",
    "ReadAll",
    "SimultaneousAttention",
    "Stop",
    "WaitK",
    "Window",
    "build_attention",
    "build_layers",
    "build_pair",
    "context",
    "having_knob",
    "name_of",
]
