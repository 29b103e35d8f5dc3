"""results.csv and results.json: one row a finished run, and how to read them back.

    for result in read_results("sweep/results.csv"):
        print(result.system, result.setting, result.bleu, result.dal)

Both files hold the same rows.  A figure that could not be had (BLEU without references) is an empty cell in the one,
null in the other and nan in Python.  Paths are kept relative to the file, so that its folder can be moved.
"""

import csv
import io
import json
import math
import os
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Union, get_type_hints

from ..console.errors import UserError
from ..console.files import write_atomically


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
    train_seconds: float  # over all attempts, without that of the warm start; nan if it was run by hand
    generate_seconds: float
    warm_start: str  # the name of the run that it started from, or empty
    checkpoint: str
    log: str  # generate-<subset>.jsonl
    commit: str  # of fairseq_milk in training, and after a comma in decoding if that was another
    al_low: float = math.nan  # these four are not in older tables
    al_high: float = math.nan
    ap_low: float = math.nan
    ap_high: float = math.nan

    @property
    def subset(self) -> str:
        """The data set that was decoded, by fairseq's name."""
        return Path(self.log).stem.replace("generate-", "", 1)


TYPES = get_type_hints(Result)


def read_results(path: Union[str, Path]) -> List[Result]:
    """The rows of results.csv or results.json (told apart by the name), in their order, with paths that can be opened.

    UserError with file, row and column if there is something else in it.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        rows: Any = json.loads(text) if path.suffix == ".json" else list(csv.DictReader(io.StringIO(text)))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path} is not a table of fairseq-milk sweep: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path} is not a table of fairseq-milk sweep: it must be a list of rows")
    return [_result(path, number, row) for number, row in enumerate(rows, start=1)]


def _result(path: Path, number: int, row: Dict[str, Any]) -> Result:
    cells: Dict[str, Any] = {}
    for name, kind in TYPES.items():
        if name not in row and name in Result._field_defaults:
            continue
        if name not in row:
            raise UserError(f"{path}, row {number}: there is no column {name}")
        try:
            cells[name] = _parse(row[name], kind)
        except (TypeError, ValueError):
            raise UserError(f"{path}, row {number}: {name} should be a {kind.__name__}, got {row[name]!r}") from None
    for name in ("checkpoint", "log"):
        cells[name] = os.path.normpath(path.parent / cells[name])
    return Result(**cells)


def _parse(cell: Any, kind: type) -> Any:
    if kind is float and cell in ("", None):
        return math.nan
    if kind is str and not isinstance(cell, str):
        raise TypeError
    return kind(cell)


def write_results(results: Sequence[Result], folder: Path) -> List[Path]:
    """results.csv and results.json, each whole or not there."""
    rows = [_relative(result, folder)._asdict() for result in results]
    blank = [{name: None if _is_nan(value) else value for name, value in row.items()} for row in rows]
    file = io.StringIO()
    writer = csv.DictWriter(file, Result._fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(blank)
    texts = {
        folder / "results.csv": file.getvalue(),
        folder / "results.json": json.dumps(blank, indent=1, ensure_ascii=False) + "\n",
    }
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)


def _relative(result: Result, folder: Path) -> Result:
    return result._replace(
        checkpoint=os.path.relpath(result.checkpoint, folder), log=os.path.relpath(result.log, folder)
    )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


# ---- for the screen -------------------------------------------------------------------------------------------------


def summary(results: Sequence[Result]) -> str:
    """What one wants to see when a sweep ends."""
    heading = ["system", "setting", "seed", "BLEU", "95 %", "DAL", "95 %", "AL", "AP"]
    cells = [
        [
            r.system,
            r.setting,
            str(r.seed),
            f"{r.bleu:.1f}",
            f"{r.bleu_low:.1f}-{r.bleu_high:.1f}",
            f"{r.dal:.2f}",
            f"{r.dal_low:.2f}-{r.dal_high:.2f}",
            f"{r.al:.2f}",
            f"{r.ap:.3f}",
        ]
        for r in results
    ]
    signatures = sorted({s for r in results for s in (r.bleu_signature, r.latency_signature) if s})
    return "\n".join([text_table([heading, *cells]), *(f"({signature})" for signature in signatures)])


def text_table(cells: Sequence[Sequence[str]]) -> str:
    """The first row is the heading; the first column is aligned to the left, the others to the right."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for number, row in enumerate(cells):
        words = [row[0].ljust(widths[0]), *(word.rjust(width) for word, width in zip(row[1:], widths[1:]))]
        lines.append("  ".join(words).rstrip())
        if number == 0:
            lines.append("-" * (sum(widths) + 2 * len(widths) - 2))
    return "\n".join(lines)
