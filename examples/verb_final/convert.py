"""Converts tables of studies before version 0.2 to the present results.csv.

    python -m examples.verb_final.convert OLD.csv NEW.csv

They had columns for the key of a system, the seed and the means, but no intervals, signatures or files.  If the runs
still exist, `examples/verb_final/run.sh --report` writes a new table instead.
"""

import argparse
import csv
import math
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from examples.verb_final import recipe
from examples.verb_final.language import KINDS
from examples.verb_final.results import BEST, ORACLE, SIGNATURE
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.console.files import write_atomically
from fairseq_milk.scoring.table import Result, as_csv


def convert(path: Path) -> List[Result]:
    systems = {ORACLE: BEST, **recipe.systems()}
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    try:
        return [_result(systems[line["system"]], line) for line in lines if line["system"] in systems]
    except (KeyError, ValueError) as error:
        raise UserError(f"{path} is not the table of an old study: {error}") from None


def _result(system: recipe.System, line: Dict[str, str]) -> Result:
    cells: Dict[str, Any] = {column: float(line[column.upper()]) for column in ("bleu", "dal", "al", "ap")}
    times = ("train_seconds", "generate_seconds")
    cells.update(dict.fromkeys(("bleu_low", "bleu_high", "dal_low", "dal_high", *times), math.nan))
    cells.update(dict.fromkeys(("bleu_signature", "warm_start", "checkpoint", "log", "commit"), ""))
    return Result(
        system=system.family,
        setting=system.point,
        seed=int(line["seed"] or 0),
        n_sentences=recipe.SIZES["test"],
        latency_signature=SIGNATURE,
        further={column: float(line[column]) for column in ("exact", *KINDS)},
        **cells,
    )


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Convert the table of an old study.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    args = parser.parse_args(argv)
    return exit_code("convert", lambda: write_atomically(args.new, as_csv(convert(args.old), args.new.parent)))


if __name__ == "__main__":
    sys.exit(main())
