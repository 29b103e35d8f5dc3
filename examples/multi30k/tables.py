"""The tables of RESULTS.md, from the table of the sweep and the validation of each training."""

import csv
import math
from pathlib import Path
from typing import Dict, Iterable, NamedTuple, Sequence

from examples.recording import Cells, run_name, systems_table, with_interval
from fairseq_milk.analysis.paper_results import NOISE, PRESERVATION
from fairseq_milk.scoring.table import Result
from fairseq_milk.sweep.training_log import statistics

PLANE = ("offline", "soft", "wait-k", "milk", "monotonic", "mocha")  # systems of the first table and the planes
TEST_SETS = {"test": "2016 Flickr", "test1": "2017 Flickr", "test2": "2017 MSCOCO"}  # by fairseq's names
FAMILIES = {"LSTM": "lstm-", "Transformer": "transformer-"}  # model families by the beginning of their systems' names
LATER = ("offline", "soft", "wait-k", "milk")  # systems that are decoded on all test sets


class Validation(NamedTuple):
    """The decoded checkpoint on val: bits per subword and DAL for the references under the hard schedule."""

    run: str
    bits: float
    dal: float


def read_validation(log: Path, run: str) -> Validation:
    """The validation with the lowest loss in a log of fairseq-train."""
    found = [statistics(line, "valid") for line in log.read_text(encoding="utf-8").splitlines()]
    best = min(filter(None, found), key=lambda figures: float(figures["valid_loss"]))
    return Validation(run, float(best["valid_nll_loss"]), float(best["valid_dal"]))


def read_validations(path: Path) -> Dict[str, Validation]:
    with open(path, encoding="utf-8", newline="") as file:
        rows = [Validation(row["run"], float(row["bits"]), float(row["dal"])) for row in csv.DictReader(file)]
    return {row.run: row for row in rows}


def all_tables(results: Sequence[Result], validations: Dict[str, Validation]) -> Dict[str, Cells]:
    rows = {(result.system, result.setting): result for result in results}
    return {
        "test": systems_table([r for r in results if r.subset == "test" and r.system in PLANE], rows.values()),
        "later": later_table(results),
        "beams": beam_table(rows.values()),
        "val": val_table(results, validations),
        "noise": noise_table([r for r in results if r.system == "noise"]),
        "mass": mass_table(rows["noise", "noise=4"], rows["unpreserved", ""]),
        "families": families_table(results, validations),
    }


def later_table(results: Sequence[Result]) -> Cells:
    """The models on the test sets of 2017 and 2016; a dash if a set has not been decoded."""
    known = {(run_name(r), r.subset): r for r in results if not r.system.endswith("-beam")}
    cells = [["system", *(f"{title}: {what}" for title in TEST_SETS.values() for what in ("BLEU", "DAL"))]]
    for r in (r for r in results if r.subset == "test" and r.system in LATER):
        row = [r.name]
        for subset in TEST_SETS:
            found = known.get((run_name(r), subset))
            row += ["–", "–"] if found is None else [f"{found.bleu:.1f}", f"{found.dal:.2f}"]
        cells.append(row)
    return cells


def beam_table(results: Iterable[Result]) -> Cells:
    beams = {"offline": ("offline-beam beam=1", "offline-beam beam=5", "offline"), "soft": ("soft", "soft-beam", "")}
    bleu = {r.name: f"{r.bleu:.1f}" for r in results if r.subset == "test"}
    heading = ["ours, 2 + 2 layers of 256 units, 8 epochs", "greedy", "beam 5", "beam 20"]
    return [heading] + [[system, *(bleu.get(key, "") for key in keys)] for system, keys in beams.items()]


def val_table(results: Sequence[Result], validations: Dict[str, Validation]) -> Cells:
    on_val = {run_name(r): r for r in results if r.system.endswith("-val")}
    heading = ["", "test: BLEU", "DAL", "val: BLEU", "DAL", "bits per subword", "DAL with references"]
    cells = [heading]
    for r in sorted((r for r in results if run_name(r) in on_val and r.subset == "test"), key=lambda r: r.dal):
        if not r.system.endswith("-beam"):
            val, known = on_val[run_name(r)], validations[run_name(r)]
            figures = [f"{r.bleu:.1f}", f"{r.dal:.2f}", f"{val.bleu:.1f}", f"{val.dal:.2f}"]
            cells.append([r.name, *figures, f"{known.bits:.2f}", f"{known.dal:.2f}"])
    return cells


def noise_table(results: Sequence[Result]) -> Cells:
    heading = ["n", "BLEU", "DAL", "the paper's BLEU", "DAL"]
    cells = [heading]
    for r in results:
        n = int(r.setting.partition("=")[2])
        bleu, dal = NOISE.get(n, (math.nan, math.nan))
        cells.append([str(n), with_interval(r, "bleu", 1), f"{r.dal:.2f}", f"{bleu}", f"{dal}"])
    return cells


def mass_table(preserved: Result, unpreserved: Result) -> Cells:
    """The paper's figures for lambda = 0.2 beside ours."""
    without_bleu, without_dal, with_bleu, with_dal = PRESERVATION[0.2]
    heading = ["mass", "BLEU", "DAL", "the paper's BLEU", "DAL"]
    lines = (("preserved", preserved, with_bleu, with_dal), ("not preserved", unpreserved, without_bleu, without_dal))
    return [heading] + [
        [label, with_interval(r, "bleu", 1), f"{r.dal:.2f}", f"{bleu}", f"{dal}"] for label, r, bleu, dal in lines
    ]


def families_table(results: Sequence[Result], validations: Dict[str, Validation]) -> Cells:
    """The systems of both model families with the time that they took; without rows if none has been trained."""
    cells = [["", "system", "val: bits per subword", "BLEU (95 %)", "DAL (95 %)", "training (s)", "decoding (s)"]]
    for family, prefix in FAMILIES.items():
        for r in (r for r in results if r.system.startswith(prefix)):
            figures = [with_interval(r, "bleu", 1), with_interval(r, "dal", 2)]
            seconds = [f"{r.train_seconds:.0f}", f"{r.generate_seconds:.0f}"]
            cells.append([family, r.name[len(prefix) :], f"{validations[run_name(r)].bits:.2f}", *figures, *seconds])
    return cells
