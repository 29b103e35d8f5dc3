"""fairseq-milk check: tests of a checkpoint, an exported folder, or a training before it starts."""

import argparse
import json
import math
import os
import time
from collections import Counter
from typing import Any, Dict, Iterator, Tuple

from ..checks.finding import FAIL, OK, SKIP, WARN, Finding
from ..console.errors import UserError, printable, reason
from ..host.command_line import only_warnings
from ..live.folder_checks import check_folder
from ..version import __version__

WORDS = {OK: "ok", WARN: "warned", FAIL: "failed", SKIP: "skipped"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", nargs="?", help="checkpoint of fairseq-train, or folder of fairseq-milk export")
    parser.add_argument("--data", metavar="DIR", help="directory of fairseq-preprocess, for the checkpoint")
    parser.add_argument("--subset", default="valid", help="the data set to check the checkpoint on (valid)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument(
        "--train",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="instead of a checkpoint, as the last option: all arguments of a fairseq-train that is to be started",
    )


def run(args: argparse.Namespace) -> int:
    """The exit code: 0 if no check failed, 1 if one failed or loading did, 2 for wrong arguments."""
    check_call(args)
    only_warnings()
    begun = time.perf_counter()
    findings: Dict[str, Finding] = {}
    for name, finding in found(args):
        findings[name] = finding
        if not args.json:
            print(f"{finding.status.upper():<6}{name:<12}{printable(finding.sentence)}", flush=True)
    counts = Counter(finding.status for finding in findings.values())
    seconds = time.perf_counter() - begun
    if args.json:
        report = {
            "passed": not counts[FAIL],
            "seconds": round(seconds, 2),
            "checks": [{"name": name, **finding._asdict()} for name, finding in findings.items()],
            "version": __version__,
        }
        print(json.dumps(finite(report), indent=2, ensure_ascii=False))
    else:
        summary = ", ".join(f"{counts[status]} {word}" for status, word in WORDS.items() if counts[status])
        print(f"{summary} in {seconds:.0f} seconds")
    return int(counts[FAIL] > 0)


def found(args: argparse.Namespace) -> Iterator[Tuple[str, Finding]]:
    """The names and findings of the checks, one after the other; a single one if loading fails."""
    try:
        if args.checkpoint is not None and os.path.isdir(args.checkpoint):
            yield from check_folder(args.checkpoint, args.data)
            return
        from ..checks.loading import from_checkpoint, from_training  # torch and fairseq, which a folder does not need

        if args.train is not None:
            subject = from_training(args.train)
        else:
            subject = from_checkpoint(args.checkpoint, args.data, args.subset)
    except UserError as error:
        yield "loading", Finding(FAIL, str(error))
    except Exception as error:  # fairseq raises many types
        what = "the training" if args.train is not None else f"{args.checkpoint} with the data of {args.data}"
        yield "loading", Finding(FAIL, f"{what} cannot be loaded: {reason(error)}")
    else:
        from ..checks.table import run_checks

        yield from run_checks(subject)


def check_call(args: argparse.Namespace) -> None:
    folder = args.checkpoint is not None and os.path.isdir(args.checkpoint)
    if args.train is None and not folder and (args.checkpoint is None or args.data is None):
        raise ValueError("give a checkpoint and its --data DIR, or --train and the arguments of fairseq-train")
    if args.train is not None and (args.checkpoint is not None or args.data is not None):
        raise ValueError("--train takes the place of a checkpoint and --data: give one or the other")


def finite(value: Any) -> Any:
    """The value with infinity and NaN replaced by None, since JSON has neither."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
