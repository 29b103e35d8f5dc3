"""Run the rows, print each when it is done, and write the results.  The exit code is 0 even if bars are missed."""

import argparse
import fnmatch
import logging
import time
import traceback
from pathlib import Path
from typing import List, Optional

from benchmarks import (
    attention,
    balance,
    decoding,
    earlier,
    growth,
    layers,
    live,
    memory,
    operations,
    output,
    report,
    startup,
    streaming,
    training,
    transformer_training,
    words_per_second,
)
from benchmarks.harness import ROOT, NotMeasuredError, Outcome, Row, Size
from benchmarks.results import Results

GROUPS = (
    layers,
    training,
    words_per_second,
    transformer_training,
    memory,
    output,
    attention,
    operations,
    decoding,
    streaming,
    earlier,
    live,
    startup,
    growth,
    balance,
)
ROWS: List[Row] = [row for group in GROUPS for row in group.ROWS]


def arguments(given: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/benchmark.sh", description="fairseq_milk against its peers, in one run")
    parser.add_argument("--quick", action="store_true", help="tiny sizes on one thread: does it run?")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="rows whose name matches, e.g. 'alpha-*'")
    parser.add_argument("--list", action="store_true", help="the names of the rows")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmark-results", help="folder of results.json, pictures")
    parser.add_argument("--record", action="store_true", help="write BENCHMARKS.md and docs/benchmarks/")
    return parser.parse_args(given)


def measured(row: Row, size: Size) -> Outcome:
    """Measure a row; a failure becomes an outcome without checks, so that the next row runs."""
    try:
        return row.measure(size)
    except NotMeasuredError as reason:
        return Outcome([], {}, f"not measured: {reason}")
    except Exception as error:
        traceback.print_exc()
        return Outcome([], {}, f"not measured: {type(error).__name__}: {error}")


def main(given: Optional[List[str]] = None) -> None:
    args = arguments(given)
    if args.quick and args.record:
        raise SystemExit("--record is for figures of the full size: leave out --quick")
    rows = [row for row in ROWS if any(fnmatch.fnmatch(row.name, pattern) for pattern in args.only or ["*"])]
    if args.list:
        print("\n".join(f"{row.name:<16} {row.what}" for row in rows))
        return
    logging.disable(logging.INFO)  # fairseq's and matplotlib's
    try:
        run(rows, args)
    finally:
        logging.disable(logging.NOTSET)


def run(rows: List[Row], args: argparse.Namespace) -> None:
    size, results = Size(args.quick, args.out / "data"), Results(args.out, args.quick)
    begun = time.perf_counter()
    for row in rows:
        start = time.perf_counter()
        outcome = measured(row, size)
        results.add(row, outcome, time.perf_counter() - start)
        print("\n".join(report.lines(row.name, results.rows[row.name])), flush=True)
    pictures = {"bars": args.out / "bars.png", "growth": args.out / "growth.png"}
    report.draw_bars(results, pictures["bars"])
    report.draw_growth(results, pictures["growth"])
    print(f"{len(rows)} rows in {time.perf_counter() - begun:.0f} s: {results.path}")
    if args.record:
        print(report.record(results, pictures, ROOT))


if __name__ == "__main__":
    main()
