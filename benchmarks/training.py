"""A training step with MILk and with wait-k against the same model with soft attention."""

from typing import List

from benchmarks.build import Shape, training_step
from benchmarks.harness import Bar, Outcome, Row, Size, compare


def step_row(full: Shape, quick: Shape, limit: float) -> Row:
    def measure(size: Size) -> Outcome:
        shape = size.pick(full, quick)
        steps = {name: training_step(name, shape) for name in ("soft", "milk", "waitk")}
        times = compare(steps, size, 4)
        checks = times.check("milk", "soft", Bar("<=", limit)) + times.check("waitk", "soft", Bar("<=", 1.03))
        return Outcome(checks, times.figures())

    what = f"training step with MILk and with wait-k, B={full.B} J=I={full.J} V=8k, 2+2 layers, H=256"
    return Row(f"step-{full.J}", what, "the same with soft attention", measure)


ROWS: List[Row] = [
    step_row(Shape(B=256, J=30), Shape(B=16, J=10, words=500, hidden=64), 1.12),
    step_row(Shape(B=64, J=100), Shape(B=8, J=20, words=500, hidden=64), 1.3),
]
