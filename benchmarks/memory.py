"""Peak memory of the sequential part of a MILk step against the same with attention in plain autograd."""

from typing import Callable, Dict, List, Type

import torch

from benchmarks.build import Shape, build_model
from benchmarks.harness import Bar, Check, Outcome, Row, Size, peak_memory
from benchmarks.plain import PlainMilk, PlainSoft
from fairseq_milk.attention import SimultaneousAttention
from fairseq_milk.models.encoder import EncoderOut

PLAIN: Dict[str, Type[SimultaneousAttention]] = {"soft": PlainSoft, "milk": PlainMilk}
VARIANTS = ("milk", "soft", "plain milk", "plain soft")


def sequential_step(name: str, shape: Shape) -> Callable[[], None]:
    """Bottom decoder layer and attention over J = I tokens, forward and backward, from given encoder states."""
    attention = name.split()[-1]
    model = build_model(attention, shape._replace(words=100, layers=1), dropout=0.0)
    if name.startswith("plain"):
        model.decoder.attention.__class__ = PLAIN[attention]
    model.train()

    def make(B: int, J: int) -> Callable[[], None]:
        h = torch.randn(B, J, shape.hidden, requires_grad=True)
        encoded = EncoderOut(h, torch.full((B,), J))
        tokens = torch.randint(4, 100, (B, J))

        def step() -> None:
            model.decoder(tokens, encoded, features_only=True)[0].sum().backward()

        return step

    make(2, 3)()  # what torch loads at its first step
    return make(shape.B, shape.J)


def measure(size: Size) -> Outcome:
    shape = size.pick(Shape(B=64, J=60, hidden=512), Shape(B=16, J=20, hidden=128))
    peaks = {name: peak_memory(sequential_step, name, shape) for name in VARIANTS}
    figures: Dict[str, Dict[str, float]] = {name: {"peak MB": peak} for name, peak in peaks.items()}
    checks = [
        Check("milk / plain soft", peaks["milk"] / peaks["plain soft"], Bar("<", 1.0)),
        Check("milk / plain milk", peaks["milk"] / peaks["plain milk"], Bar("<=", 1 / 3)),
    ]
    return Outcome(checks, figures)


ROWS: List[Row] = [
    Row("memory", "peak memory of bottom layer + MILk, B=64 J=I=60 H=512", "soft and MILk in plain autograd", measure)
]
