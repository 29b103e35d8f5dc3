"""A training step with MILk, and one with wait-k, against the same model with soft attention."""

from typing import List

from benchmarks.build import Shape, training_step
from benchmarks.harness import Bar, Outcome, Row, Size, compare


def step_row(name: str, attention: str, full: Shape, quick: Shape, limit: float) -> Row:
    def measure(size: Size) -> Outcome:
        shape = size.pick(full, quick)
        times = compare({kind: training_step(kind, shape) for kind in ("soft", attention)}, size, 2.5)
        return Outcome(times.check(attention, "soft", Bar("<=", limit)), times.figures())

    what = f"training step with {attention}, B={full.B} J=I={full.J} V=8k, 2+2 layers, H=256"
    return Row(name, what, "the same with soft attention", measure)


ROWS: List[Row] = [
    step_row("step-30", "milk", Shape(B=256, J=30), Shape(B=16, J=10, words=500, hidden=64), 1.12),
    step_row("step-100", "milk", Shape(B=64, J=100), Shape(B=8, J=20, words=500, hidden=64), 1.3),
    step_row("step-waitk", "waitk", Shape(B=64, J=30), Shape(B=8, J=10, words=500, hidden=64), 1.03),
]
