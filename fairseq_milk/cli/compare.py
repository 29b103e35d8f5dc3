"""fairseq-milk compare: two systems, or two curves of a table, at equal DAL by paired bootstrap.

    fairseq-milk compare sweep/results.csv milk wait-k
    fairseq-milk compare sweep/results.csv milk-latency-weight=0.1 wait-k
    fairseq-milk compare a=a/generate-test.jsonl b=b/generate-test.jsonl a b

A system given by its name is the curve through all its settings, with straight lines between the points; a system given
with a setting is one point.  For two points, BLEU and DAL are compared directly.  Sentences are resampled, and seeds if
there are several.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from ..analysis.systems import System, read_systems
from ..console.errors import UserError
from ..console.tables import difference_with_bounds, markdown_table
from ..scoring.curves import Comparison, CurveDifference, compare, make_curve
from ..scoring.records import check_same_sentences
from ..scoring.score import QUALITIES, Score, score_file
from ..scoring.table import Result
from ..scoring.texts import check_comparable
from .score import add_resampling, check_resampling

MEAN = "mean over both"  # in the place of a setting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = __doc__
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="as for fairseq-milk plot: tables, or NAME=FILE")
    parser.add_argument("systems", nargs=2, metavar="SYSTEM", help="for example: milk wait-k")
    parser.add_argument("--subset", metavar="NAME", help="use the results on this data set, e.g. valid")
    parser.add_argument("--measure", choices=QUALITIES, default="BLEU", help="the metric to compare (%(default)s)")
    parser.add_argument("--references", type=Path, metavar="FILE", help="the published text of the test set, instead "
                        "of the references that fairseq-generate had")  # fmt: skip
    add_resampling(parser)


def run(args: argparse.Namespace) -> int:
    check_resampling(args)
    if not args.bootstrap:
        raise UserError("--bootstrap 0: a comparison needs resamples")
    systems = read_systems(args.inputs, args.subset)
    chosen = [choose(systems, name) for name in args.systems]
    scores = [[[read(row, args.references) for row in system.results] for system in curve] for curve in chosen]
    rows = [row for curve in chosen for system in curve for row in system.results]
    warnings = check_comparable_rows(rows, [score for curve in scores for point in curve for score in point])
    curves = [
        make_curve(points, [system.point for system in curve], args.measure, args.bootstrap, args.seed)
        for points, curve in zip(scores, chosen)
    ]
    found = compare(*curves)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(as_dict(found, args), indent=2, ensure_ascii=False) if args.json else as_text(found, args))
    return 0


def choose(systems: Sequence[System], name: str) -> List[System]:
    """All settings of the system of this name, or the one setting named."""
    found = [system for system in systems if name in (system.name, system.key, system.label)]
    if not found:
        known = ", ".join(dict.fromkeys(key for system in systems for key in (system.name, system.key)))
        raise UserError(f"there is no system {name}; there are {known}")
    return found


def read(row: Result, path: Optional[Path]) -> Score:
    """The score of the generation of a row, counted as its signatures say.  path: of other references."""
    if not os.path.isfile(row.log):
        raise UserError(f"the sentences of {row.run} are not here: there is no file {row.log!r}")
    score = score_file(row.log, row.metrics(), path)
    if score.no_latency is not None:
        raise UserError(f"{row.run} has no latency: {score.no_latency}")
    return score


def check_comparable_rows(rows: Sequence[Result], scores: Sequence[Score]) -> List[str]:
    """Warnings about the texts, each once; ValueError if a row cannot be compared with the first."""
    warnings = []
    for row, score in zip(rows, scores):
        names = rows[0].run, row.run
        check_same_sentences(scores[0].records, score.records, names)
        if scores[0].metrics != score.metrics:
            raise UserError(f"{names[0]} and {names[1]} were counted differently: their signatures differ")
        own = score.texts.warning()
        warnings += [own and f"{names[1]}: {own}", check_comparable(scores[0].texts, score.texts, names)]
    return [warning for warning in dict.fromkeys(warnings) if warning]


# ---- what is printed ------------------------------------------------------------------------------------------------


def as_text(found: Comparison, args: argparse.Namespace) -> str:
    """A Markdown table and a concluding sentence."""
    first, second = args.systems
    heading = [f"{first} - {second}", "DAL", f"{args.measure} (95 %)", "resamples above"]
    rows = [difference_cells(difference.setting or first, difference) for difference in found.points]
    if found.mean is not None:
        rows.append(difference_cells(MEAN, found.mean))
    lines = [markdown_table([heading, *rows]), ""]
    if found.lag is not None:
        lines.append(f"{first} minus {second} in DAL: {difference_with_bounds(*found.lag)}.")
    else:
        lines.append(f"{first} is above {second} over {found.share:.0%} of these lags.")
    return "\n".join(lines)


def difference_cells(name: str, difference: CurveDifference) -> List[str]:
    """The row of a table: name, DAL, quality with its interval, and the share of the resamples above."""
    lag = " to ".join(f"{dal:.2f}" for dal in difference.dal)
    return [name, lag, difference_with_bounds(*difference.quality), f"{difference.above:.0%}"]


def as_dict(found: Comparison, args: argparse.Namespace) -> Dict[str, Any]:
    return {
        "systems": args.systems,
        "measure": args.measure,
        "points": [difference.to_dict() for difference in found.points],
        "mean": None if found.mean is None else found.mean.to_dict(),
        "share": found.share,
        "lag": None if found.lag is None else found.lag._asdict(),
        "resamples": args.bootstrap,
        "seed": args.seed,
    }
