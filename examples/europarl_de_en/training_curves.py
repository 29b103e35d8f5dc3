"""Expected and hard DAL during training, from the logs of a sweep.

A training logs the *expected* DAL of its noisy schedule.  A validation also has the *hard* schedule, the one that is
decoded, and the bits per subword under both.
"""

import csv
import math
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

from matplotlib.figure import Figure

from fairseq_milk.analysis import drawing
from fairseq_milk.analysis.looks import display_name, style_of
from fairseq_milk.sweep.training_log import statistics


class Point(NamedTuple):
    """The figures after a number of updates; nan if not measured."""

    run: str
    updates: int
    expected_dal: float
    hard_dal: float = math.nan
    expected_bits: float = math.nan
    hard_bits: float = math.nan


def read_log(path: Path) -> List[Point]:
    """The figures in a log of `fairseq-train --log-format json`; the run is named by its folder."""
    points = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        training, validation = statistics(line, "train_inner"), statistics(line, "valid")
        if training is not None:
            points.append(Point(path.parent.name, int(training["num_updates"]), float(training["dal"])))
        if validation is not None:
            points.append(_validation(path.parent.name, validation))
    return points


def _validation(run: str, found: Dict[str, Any]) -> Point:
    """A fixed schedule has no expected figures beside the hard ones: they are the same."""
    dal, bits = float(found["valid_dal"]), float(found["valid_nll_loss"])
    expected = float(found.get("valid_expected_dal", dal)), float(found.get("valid_expected_nll_loss", bits))
    return Point(run, int(found["valid_num_updates"]), expected[0], dal, expected[1], bits)


def read_points(path: Path) -> List[Point]:
    with open(path, encoding="utf-8", newline="") as file:
        return [
            Point(row.pop("run"), int(row.pop("updates")), **{name: float(value) for name, value in row.items()})
            for row in csv.DictReader(file)
        ]


def validation_table(points: Sequence[Point], runs: Sequence[str]) -> List[List[str]]:
    """One row per validation of each run, in the order of `runs`."""
    heading = ["training", "updates", "bits per subword, hard", "expected", "DAL, hard", "expected"]
    validations = {run: [p for p in points if p.run == run and not math.isnan(p.hard_dal)] for run in runs}
    return [heading] + [
        [
            run,
            f"{p.updates:,}",
            f"{p.hard_bits:.2f}",
            f"{p.expected_bits:.2f}",
            f"{p.hard_dal:.1f}",
            f"{p.expected_dal:.1f}",
        ]
        for run, found in validations.items()
        for p in found
    ]


def figure(points: Sequence[Point], labels: Dict[str, str]) -> Figure:
    """Expected DAL of the trainings over their updates, with the hard DAL of validations as dots.  labels: by run."""
    with drawing.house_style():
        drawn = Figure(figsize=(6.0, 3.6), layout="constrained")
        axes: Any = drawn.add_subplot()
        for (run, label), (colour, _) in zip(labels.items(), style_of(labels.values()).values()):
            expected = [(p.updates, p.expected_dal) for p in points if p.run == run and math.isnan(p.hard_dal)]
            axes.plot(*zip(*expected), color=colour, label=drawing.literal(display_name(label)), linewidth=1.2)
            hard = [(p.updates, p.hard_dal) for p in points if p.run == run and not math.isnan(p.hard_dal)]
            if hard:
                axes.plot(*zip(*hard), "o", color=colour, markersize=4)
        axes.set_xlabel("updates")
        axes.set_ylabel("DAL (line: expected, dots: hard, on dev)")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    return drawn
