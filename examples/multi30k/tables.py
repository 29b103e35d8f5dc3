"""The tables of RESULTS.md, from the table of the sweep and from what val said of each model in training."""

import csv
import json
import math
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Sequence

from fairseq_milk.analysis.paper_results import NOISE, PRESERVATION
from fairseq_milk.scoring.table import Result

Cells = List[List[str]]
MINUTE = 60.0
TEST_SETS = {"test": "2016 Flickr", "test1": "2017 Flickr", "test2": "2017 MSCOCO"}  # by fairseq's names
LATER = ("offline", "soft", "wait-k", "milk")  # systems that are decoded on all of them


class Validation(NamedTuple):
    """Of the checkpoint that was decoded: bits a subword and DAL on val, the references given, the schedule hard."""

    run: str
    bits: float
    dal: float


def read_validation(log: Path, run: str) -> Validation:
    """The validation with the lowest loss in a log of fairseq-train."""
    marker = "| INFO | valid | "
    lines = (line.partition(marker)[2] for line in log.read_text(encoding="utf-8").splitlines() if marker in line)
    best = min(map(json.loads, lines), key=lambda figures: float(figures["valid_loss"]))
    return Validation(run, float(best["valid_nll_loss"]), float(best["valid_dal"]))


def read_validations(path: Path) -> Dict[str, Validation]:
    with open(path, encoding="utf-8", newline="") as file:
        rows = [Validation(row["run"], float(row["bits"]), float(row["dal"])) for row in csv.DictReader(file)]
    return {row.run: row for row in rows}


def run_name(result: Result) -> str:
    """The folder of the run that trained the model."""
    return Path(result.checkpoint).parts[-3]


def name(result: Result) -> str:
    return f"{result.system} {result.setting}".strip()


def all_tables(results: Sequence[Result], validations: Dict[str, Validation]) -> Dict[str, Cells]:
    rows = {(result.system, result.setting): result for result in results}
    return {
        "test": test_table(
            [r for r in results if r.subset == "test" and not r.system.endswith("-beam")], rows.values()
        ),
        "later": later_table(results),
        "beams": beam_table(rows.values()),
        "val": val_table(results, validations),
        "noise": noise_table([r for r in results if r.system == "noise"]),
        "mass": mass_table(rows["noise", "noise=4"], rows["unpreserved", ""]),
    }


def test_table(shown: Sequence[Result], everything: Iterable[Result]) -> Cells:
    minutes = {run_name(r): r.train_seconds / MINUTE for r in everything}
    heading = ["system", "BLEU (95 %)", "DAL (95 %)", "AL (95 %)", "AP", "minutes", "with its start"]
    return [heading] + [
        [
            name(r),
            f"{r.bleu:.1f} ({r.bleu_low:.1f}–{r.bleu_high:.1f})",
            f"{r.dal:.2f} ({r.dal_low:.2f}–{r.dal_high:.2f})",
            f"{r.al:.2f} ({r.al_low:.2f}–{r.al_high:.2f})",
            f"{r.ap:.3f}",
            f"{minutes[run_name(r)]:.0f}",
            f"{minutes[run_name(r)] + minutes.get(r.warm_start, 0.0):.0f}",
        ]
        for r in shown
    ]


def later_table(results: Sequence[Result]) -> Cells:
    """The same models on the test sets of 2017 beside that of 2016; a dash where a set has not been decoded."""
    known = {(run_name(r), r.subset): r for r in results if not r.system.endswith("-beam")}
    cells = [["system", *(f"{title}: {what}" for title in TEST_SETS.values() for what in ("BLEU", "DAL"))]]
    for r in (r for r in results if r.subset == "test" and r.system in LATER):
        row = [name(r)]
        for subset in TEST_SETS:
            found = known.get((run_name(r), subset))
            row += ["–", "–"] if found is None else [f"{found.bleu:.1f}", f"{found.dal:.2f}"]
        cells.append(row)
    return cells


def beam_table(results: Iterable[Result]) -> Cells:
    beams = {"offline": ("offline-beam beam=1", "offline-beam beam=5", "offline"), "soft": ("soft", "soft-beam", "")}
    bleu = {name(r): f"{r.bleu:.1f}" for r in results if r.subset == "test"}
    heading = ["ours, 2 + 2 layers of 256 units, 8 epochs", "greedy", "beam 5", "beam 20"]
    return [heading] + [[system, *(bleu.get(key, "") for key in keys)] for system, keys in beams.items()]


def val_table(results: Sequence[Result], validations: Dict[str, Validation]) -> Cells:
    on_val = {run_name(r): r for r in results if r.system.endswith("-val")}
    heading = ["", "test: BLEU", "DAL", "val: BLEU", "DAL", "bits a subword", "DAL with references"]
    cells = [heading]
    for r in sorted((r for r in results if run_name(r) in on_val and r.subset == "test"), key=lambda r: r.dal):
        if not r.system.endswith("-beam"):
            val, known = on_val[run_name(r)], validations[run_name(r)]
            figures = [f"{r.bleu:.1f}", f"{r.dal:.2f}", f"{val.bleu:.1f}", f"{val.dal:.2f}"]
            cells.append([name(r), *figures, f"{known.bits:.2f}", f"{known.dal:.2f}"])
    return cells


def noise_table(results: Sequence[Result]) -> Cells:
    heading = ["n", "BLEU", "DAL", "the paper's BLEU", "DAL"]
    cells = [heading]
    for r in results:
        n = int(r.setting.partition("=")[2])
        bleu, dal = NOISE.get(n, (math.nan, math.nan))
        cells.append(
            [str(n), f"{r.bleu:.1f} ({r.bleu_low:.1f}–{r.bleu_high:.1f})", f"{r.dal:.2f}", f"{bleu}", f"{dal}"]
        )
    return cells


def mass_table(preserved: Result, unpreserved: Result) -> Cells:
    """The paper's lambda = 0.2 beside ours."""
    without_bleu, without_dal, with_bleu, with_dal = PRESERVATION[0.2]
    heading = ["mass", "BLEU", "DAL", "the paper's BLEU", "DAL"]
    lines = (("preserved", preserved, with_bleu, with_dal), ("not preserved", unpreserved, without_bleu, without_dal))
    return [heading] + [
        [label, f"{r.bleu:.1f} ({r.bleu_low:.1f}–{r.bleu_high:.1f})", f"{r.dal:.2f}", f"{bleu}", f"{dal}"]
        for label, r, bleu, dal in lines
    ]
