"""Writes what the repository keeps of the sweep: results/, and the tables of RESULTS.md.

    python -m examples.europarl_de_en.record examples/europarl_de_en/sweep [--shown MILK-RUN WAIT-K-RUN]

results/ gets the rows of results.csv, training.csv (training_curves.py), comparison.json (MILk minus wait-k at equal
DAL by paired bootstrap, from the sentences, which are not kept: the text is not ours), and the pictures.  Runs that
were recorded before and are not in this sweep are kept: the points of a curve may be trained in several sessions.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Collection, Dict, List, Optional, Sequence

from examples.document import fill
from examples.europarl_de_en import schedules, training_curves
from examples.recording import (
    Cells,
    as_csv,
    compare,
    figures_by_seed,
    label,
    merged_results,
    plot,
    systems_table,
    with_interval,
)
from fairseq_milk.analysis import drawing
from fairseq_milk.cli.compare import MEAN, difference_cells
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.console.files import write_atomically
from fairseq_milk.scoring import table
from fairseq_milk.scoring.curves import CurveDifference
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.table import INTERVALS as HEADINGS
from fairseq_milk.scoring.table import Result, read_results

HERE = Path(__file__).resolve().parent
DOCUMENT, KEPT = HERE / "RESULTS.md", HERE / "results"
TABLE, TRAINING, COMPARISON = KEPT / "results.csv", KEPT / "training.csv", KEPT / "comparison.json"
FIGURES = {"bleu": 1, "chrf": 1, "dal": 2, "al": 2, "ap": 3}
SUBSETS = {"test": ("milk", "wait-k"), "valid": ("milk-dev", "wait-k-dev")}  # the two curves by their names
FROM_SCRATCH = {
    "soft-s1": "soft",
    "wait-k-scratch-wait-k=10-s1": "wait-k-scratch, k = 10",
    "milk-scratch-s1": "milk-scratch",
    "soft-4000-s1": "soft, batches of 4,000",
    "milk-short-s1": "milk-short, batches of 4,000",
    "scaled-s1": "scaled, batches of 4,000",
    "literal-s1": "literal, batches of 4,000",
}
SHOWN = ("MILk", "wait-k")  # the systems whose schedules are drawn
SENTENCES = (392, 448, 650, 1986)


def record(sweep: Path, shown: Sequence[str]) -> None:
    KEPT.mkdir(exist_ok=True)
    write_atomically(TABLE, table.as_csv(merged_results(TABLE, sweep), KEPT))
    points = [point for log in sorted(sweep.glob("*/train.log")) for point in training_curves.read_log(log)]
    runs, before = {point.run for point in points}, training_curves.read_points(TRAINING) if TRAINING.exists() else []
    write_atomically(TRAINING, as_csv([*(point for point in before if point.run not in runs), *points]))
    kept = json.loads(COMPARISON.read_text(encoding="utf-8")) if COMPARISON.exists() else {}
    write_atomically(COMPARISON, json.dumps({**kept, **comparisons(sweep)}, indent=1, ensure_ascii=False) + "\n")
    logs = {name: str(sweep / run / "results" / "generate-valid.jsonl") for name, run in zip(SHOWN, shown)}
    records = {name: read_generate_log(path).records for name, path in logs.items()}
    for sentence in SENTENCES if records else ():
        schedules.draw(records, sentence, KEPT)
    if logs:
        plot("delays", *(f"{name}={path}" for name, path in logs.items()), "--out", KEPT / "initial-delays.png")
    draw()
    write_atomically(DOCUMENT, fill(DOCUMENT, tables()))


def comparisons(sweep: Path) -> Dict[str, Any]:
    """MILk minus wait-k on each data set, as far as the sweep has both curves."""
    table_of_sweep = sweep / "results.csv"
    results, found = read_results(table_of_sweep), {}
    for subset, curves in SUBSETS.items():
        seeds = {result.seed for result in results if result.system in curves}
        compared = compare(table_of_sweep, *curves, subset)
        if compared:
            found[comparison_name(subset, seeds)] = compared
    return found


def comparison_name(subset: str, seeds: Collection[int]) -> str:
    """The data set, with the seeds if the whole curves, which have seed 1, are not in the sweep."""
    return subset if 1 in seeds else f"{subset}, seeds {' and '.join(map(str, sorted(seeds)))}"


def draw() -> None:
    """The planes and the course of the trainings, from what the repository keeps."""
    for latency in ("dal", "al", "ap"):
        plot("plane", TABLE, "--subset", "test", "--latency", latency, "--out", KEPT / f"{latency}.png")
    points = training_curves.read_points(TRAINING)
    known = {run: label for run, label in FROM_SCRATCH.items() if any(point.run == run for point in points)}
    drawing.save(training_curves.figure(points, known), KEPT / "training", ["png"])


def tables() -> Dict[str, Cells]:
    """From what the repository keeps."""
    results, points = by_lag(read_results(TABLE)), training_curves.read_points(TRAINING)
    known = [run for run in FROM_SCRATCH if any(point.run == run for point in points)]
    compared = json.loads(COMPARISON.read_text(encoding="utf-8"))
    return {
        "test": systems_table([r for r in results if r.subset == "test"], results, FIGURES),
        "dev": dev_table([r for r in results if r.subset == "valid"]),
        **({"difference": difference_table(compared)} if compared else {}),
        "seeds": seeds_table([r for r in results if r.subset == "test"]),
        "scratch": training_curves.validation_table(points, known),
    }


def by_lag(results: Sequence[Result]) -> List[Result]:
    """The systems in the order in which they were trained first, each by its lag."""
    order = list(dict.fromkeys(result.system for result in results))
    return sorted(results, key=lambda result: (order.index(result.system), result.dal))


def dev_table(results: Sequence[Result]) -> Cells:
    heading = ["system", *(f"{HEADINGS[column]} (95 %)" for column in FIGURES)]
    return [heading] + [
        [label(r, results), *(with_interval(r, c, places) for c, places in FIGURES.items())] for r in results
    ]


def seeds_table(results: Sequence[Result]) -> Cells:
    """The systems that were trained with several seeds."""
    names = list(dict.fromkeys(result.name for result in results))
    groups = {name: sorted((r for r in results if r.name == name), key=lambda r: r.seed) for name in names}
    cells = [["system", "seeds", "BLEU of each seed", "mean", "DAL of each seed", "mean"]]
    for name, group in groups.items():
        if len(group) > 1:
            cells.append([name, ", ".join(str(r.seed) for r in group), *figures_by_seed(group)])
    return cells


def difference_table(comparisons: Dict[str, Any]) -> Cells:
    """MILk minus wait-k, at each of MILk's points and over all lags that both have."""
    rows: Cells = [["MILk minus wait-k", "DAL", "BLEU (95 %)", "resamples above"]]
    for subset, found in comparisons.items():
        for difference in map(CurveDifference.from_dict, [*found["points"], found["mean"]]):
            rows.append(difference_cells(f"{subset}, {difference.setting or MEAN}", difference))
    return rows


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Keep the results of the sweep in the repository.")
    parser.add_argument("sweep", type=Path, help="its output folder")
    parser.add_argument("--shown", nargs=2, default=(), metavar="RUN", help="runs on dev whose "
                        "schedules are drawn")  # fmt: skip
    args = parser.parse_args(argv)
    return exit_code("record", lambda: record(args.sweep, args.shown))


if __name__ == "__main__":
    sys.exit(main())
