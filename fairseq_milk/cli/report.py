"""fairseq-milk report: a sweep, or some generations, as one HTML file."""

import argparse
import shlex
import sys

from ..analysis.paper_results import TEST_SETS
from ..analysis.report import Choice, build_report
from ..analysis.sentences import check_sentence
from ..analysis.systems import read_systems
from ..console.errors import UserError, require
from ..console.files import write_atomically
from .plot import add_inputs, check_out, read_generations


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    parser.add_argument("--out", required=True, metavar="FILE.html", help="the report")
    parser.add_argument("--sentence", type=int, nargs="+", default=[], metavar="ID", help="sentences to draw")
    parser.add_argument("--worst", type=int, default=2, metavar="N", help="draw the N sentences with the lowest BLEU "
                        "and the N with the largest lag (2)")  # fmt: skip
    parser.add_argument("--paper", choices=TEST_SETS, help="also show the paper's curves and table")
    parser.add_argument("--title", default=Choice().title, help=f"title of the page ({Choice().title})")


def run(args: argparse.Namespace) -> int:
    path = check_out(args.out, ["html"])
    require(args.worst >= 0, "worst", args.worst, "must not be negative")
    systems = read_systems(args.inputs, args.subset)
    generations = read_generations(systems, args)
    for i in args.sentence:
        if not generations:
            raise UserError(f"--sentence {i}: there are no delays, or the logs that hold them are not here")
        check_sentence(i, generations[0])
    command = shlex.join(["fairseq-milk", *sys.argv[1:]])
    choice = Choice(args.title, args.sentence, args.worst, args.paper, command)
    write_atomically(path, build_report(systems, generations, choice))
    print(path)
    return 0
