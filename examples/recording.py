"""What recipes share when they keep the results of a sweep in the repository: files, pictures, a table of systems."""

import contextlib
import csv
import io
import json
import os
from pathlib import Path
from statistics import fmean
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from fairseq_milk import cli
from fairseq_milk.console.errors import RunError
from fairseq_milk.console.files import write_atomically
from fairseq_milk.console.tables import with_bounds
from fairseq_milk.scoring.table import INTERVALS as HEADINGS
from fairseq_milk.scoring.table import Result, read_results

Cells = List[List[str]]
MINUTE = 60.0
FIGURES = {"bleu": 1, "dal": 2, "al": 2, "ap": 3}


def run_name(result: Result) -> str:
    """The folder of the run that trained the model."""
    return Path(result.checkpoint).parts[-3]


def systems_table(shown: Sequence[Result], everything: Iterable[Result], figures: Mapping[str, int] = FIGURES) -> Cells:
    """One row per system.  figures: columns of results.csv that have intervals, and their decimal places."""
    minutes = {run_name(r): r.train_seconds / MINUTE for r in everything}
    heading = ["system", *(f"{HEADINGS[column]} (95 %)" for column in figures), "minutes", "with its start"]
    return [heading] + [
        [
            label(r, shown),
            *(with_interval(r, column, places) for column, places in figures.items()),
            f"{minutes[run_name(r)]:.0f}",
            f"{minutes[run_name(r)] + minutes.get(r.warm_start, 0.0):.0f}",
        ]
        for r in shown
    ]


def label(result: Result, shown: Iterable[Result]) -> str:
    """Its name, with the seed if others of that name are shown."""
    alone = sum(other.name == result.name for other in shown) == 1
    return result.name if alone else f"{result.name}, seed {result.seed}"


def with_interval(result: Result, column: str, places: int) -> str:
    """A figure of a row with its 95 % interval."""
    value, low, high = (result.figure(f"{column}{end}") for end in ("", "_low", "_high"))
    return with_bounds(value, low, high, places)


def figures_by_seed(results: Sequence[Result]) -> List[str]:
    """Four cells: BLEU of each seed and its mean, DAL of each seed and its mean."""
    cells: List[str] = []
    for column, places in (("bleu", 1), ("dal", 2)):
        figures = [result.figure(column) for result in results]
        cells += [", ".join(f"{figure:.{places}f}" for figure in figures), f"{fmean(figures):.{places}f}"]
    return cells


def plot(*words: Any) -> None:
    if cli.main(["plot", *map(str, words)]) != 0:
        raise RunError(f"fairseq-milk plot {' '.join(map(str, words))} failed")


def compare(results: Path, first: str, second: str, subset: str) -> Optional[Dict[str, Any]]:
    """What `fairseq-milk compare --json` says of two systems or curves; None if it refuses."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = cli.main(["compare", str(results), first, second, "--subset", subset, "--json"])
    return None if code else json.loads(said.getvalue())


def write_lines(path: Path, lines: Any) -> None:
    write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def as_csv(rows: Sequence[Any]) -> str:
    """The CSV text of named tuples of one type, at least one."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([rows[0]._fields, *rows])
    return file.getvalue()


def merged_results(kept: Path, sweep: Path) -> List[Result]:
    """The rows of the table `kept`, if it exists, in which those of the sweep take the place of the same systems.

    Paths of the sweep become paths in the folder of `kept`.
    """

    def moved(path: str) -> str:
        return str(kept.parent / os.path.relpath(path, sweep))

    before = read_results(kept) if kept.exists() else []
    new = read_results(sweep / "results.csv")
    new = [result._replace(checkpoint=moved(result.checkpoint), log=moved(result.log)) for result in new]
    return list({(result.system, result.setting, result.seed): result for result in (*before, *new)}.values())
