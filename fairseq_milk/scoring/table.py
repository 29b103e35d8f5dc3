"""Reads and writes results.csv and results.json: one row per scored run of a sweep or a study.

    for result in read_results("sweep/results.csv"):
        print(result.system, result.setting, result.bleu, result.dal)

Both files hold the same rows.  A missing figure (BLEU without references) is an empty cell in the CSV file, null in the
JSON file and nan in Python.  Paths are relative to the file, so that its folder can be moved.  Columns other than those
of `Result` hold further figures of a study (`exact`, the share of sentences without a mistake); they are read into
`Result.further`.
"""

import csv
import io
import json
import math
import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Union, get_type_hints

from ..console.errors import UserError, printable
from ..console.files import refuse_endless, write_atomically
from .score import Metrics, Score

INTERVALS = {"bleu": "BLEU", "chrf": "chrF", "dal": "DAL", "al": "AL", "ap": "AP", "laal": "LAAL"}
FIGURES = {**INTERVALS, "cw": "CW", "initial_delay": "initial"}  # column: metric of `Score`
FURTHER = "further"
PATHS = ("checkpoint", "log")


class Result(NamedTuple):
    """One run: a system at one setting of its grid, with one seed.  low and high: 95 % confidence interval."""

    system: str
    setting: str  # latency-weight=0.1, or empty if the system has no grid
    seed: int
    bleu: float
    bleu_low: float
    bleu_high: float
    dal: float
    dal_low: float
    dal_high: float
    al: float
    ap: float
    n_sentences: int
    bleu_signature: str
    latency_signature: str
    train_seconds: float  # over all attempts, without the warm start; nan if it was run by hand
    generate_seconds: float
    warm_start: str  # the name of the run that it starts from, or empty
    checkpoint: str
    log: str  # generate-<subset>.jsonl
    commit: str  # version of fairseq_milk in training, followed by that in decoding if it differs
    al_low: float = math.nan  # this and the following columns are missing in older tables
    al_high: float = math.nan
    ap_low: float = math.nan
    ap_high: float = math.nan
    chrf: float = math.nan
    chrf_low: float = math.nan
    chrf_high: float = math.nan
    chrf_signature: str = ""
    laal: float = math.nan
    laal_low: float = math.nan
    laal_high: float = math.nan
    cw: float = math.nan
    initial_delay: float = math.nan
    collapse: str = ""  # 'reads everything' or 'writes at once' of a learned schedule (scoring/collapse.py)
    further: Mapping[str, float] = {}

    @property
    def name(self) -> str:
        """System and setting, for example milk latency-weight=0.1."""
        return f"{self.system} {self.setting}".strip()

    @property
    def run(self) -> str:
        """The name with the seed, for messages."""
        return f"{self.name} (seed {self.seed})"

    @property
    def subset(self) -> str:
        """fairseq's name of the decoded data set."""
        return Path(self.log).stem.replace("generate-", "", 1)

    def metrics(self) -> Metrics:
        """The settings of its score, read from its signatures.  UserError if they are damaged."""
        try:
            return Metrics.from_signatures(self.bleu_signature, self.latency_signature)
        except UserError as error:
            raise UserError(f"{self.run}: {error}") from None

    def figure(self, name: str) -> float:
        """The value of a column: bleu, dal, ..., or one of `further`; nan if there is none."""
        return float(self.further[name] if name in self.further else getattr(self, name, math.nan))


TYPES = {name: kind for name, kind in get_type_hints(Result).items() if name != FURTHER}


def make_result(score: Score, system: str, setting: str = "", seed: int = 0, **others: Any) -> Result:
    """The row of a score, with its intervals.  others: columns that are not part of the score."""
    figures: Dict[str, Any] = {column: score.figure(measure) for column, measure in FIGURES.items()}
    for column, measure in INTERVALS.items():
        figures[column], figures[f"{column}_low"], figures[f"{column}_high"] = score.interval(measure)
    row = {
        **dict.fromkeys(("train_seconds", "generate_seconds"), math.nan),
        **dict.fromkeys(("warm_start", "checkpoint", "log", "commit"), ""),
        "n_sentences": len(score.records),
        "bleu_signature": score.signature("BLEU"),
        "chrf_signature": score.signature("chrF"),
        "latency_signature": score.signature("DAL"),
        **figures,
        **others,
    }
    return Result(system=system, setting=setting, seed=seed, **row)


# ---- files ----------------------------------------------------------------------------------------------------------


def read_results(path: Union[str, Path]) -> List[Result]:
    """The rows of results.csv or results.json (distinguished by the suffix), with paths relative to the current folder.

    UserError with file, row and column if a row is invalid.
    """
    path = Path(path)
    refuse_endless(path)
    try:
        text = path.read_text(encoding="utf-8")
        rows: Any = json.loads(text) if path.suffix == ".json" else list(csv.DictReader(io.StringIO(text)))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError, csv.Error) as error:  # RecursionError: nested too deeply
        raise UserError(f"{path} is not a table of fairseq-milk sweep: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path} is not a table of fairseq-milk sweep: it must be a list of rows")
    return [_read_row(path, number, row) for number, row in enumerate(rows, start=1)]


def _read_row(path: Path, number: int, row: Dict[str, Any]) -> Result:
    cells: Dict[str, Any] = {}
    for name, kind in {**TYPES, **{name: float for name in row if name not in TYPES}}.items():
        if name not in row and name in Result._field_defaults:
            continue
        if name not in row:
            raise UserError(f"{path}, row {number}: there is no column {name}")
        try:
            cells[name] = _parse(row[name], kind)
        except (TypeError, ValueError, OverflowError):
            raise UserError(
                f"{path}, row {number}: {name} should be a {kind.__name__}, got {row[name]!r:.100}"
            ) from None
        if isinstance(cells[name], str) and printable(cells[name]) != cells[name]:
            raise UserError(f"{path}, row {number}: {name} has control characters")
    for name in PATHS:
        cells[name] = os.path.normpath(path.parent / cells[name]) if cells[name] else ""
    further = {name: cells.pop(name) for name in list(cells) if name not in TYPES}
    return Result(**cells, further=further)


def _parse(cell: Any, kind: type) -> Any:
    if kind is float and cell in ("", None):
        return math.nan
    if kind is str and not isinstance(cell, str):
        raise TypeError
    return kind(cell)


def write_results(results: Sequence[Result], folder: Path) -> List[Path]:
    """Write results.csv and results.json, each atomically."""
    texts = {folder / "results.csv": as_csv(results, folder), folder / "results.json": as_json(results, folder)}
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)


def as_csv(results: Sequence[Result], folder: Path) -> str:
    """The content of results.csv.  folder: where the file will be."""
    further = dict.fromkeys(column for result in results for column in result.further)
    file = io.StringIO()
    writer = csv.DictWriter(file, [*TYPES, *further], lineterminator="\n")
    writer.writeheader()
    writer.writerows(_cells(result, folder) for result in results)
    return file.getvalue()


def as_json(results: Sequence[Result], folder: Path) -> str:
    """The content of results.json.  folder: where the file will be."""
    return json.dumps([_cells(result, folder) for result in results], indent=1, ensure_ascii=False) + "\n"


def _cells(result: Result, folder: Path) -> Dict[str, Any]:
    cells = {**result._asdict(), **result.further}
    del cells[FURTHER]
    for name in PATHS:
        cells[name] = os.path.relpath(cells[name], folder) if cells[name] else ""
    return {name: None if isinstance(cell, float) and math.isnan(cell) else cell for name, cell in cells.items()}
