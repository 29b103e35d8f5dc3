"""The study: every system of the recipe with several seeds, its tables and its pictures."""

import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

from examples.verb_final import recipe
from examples.verb_final.corpus import prepare_data
from examples.verb_final.report import report
from examples.verb_final.runs import make_run
from fairseq_milk.sweep.commands import exit_code
from fairseq_milk.sweep.progress import Line
from fairseq_milk.sweep.scheduler import run_all

OUT = Path(__file__).resolve().parents[2] / "study"


def parse(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples/verb_final/run.sh", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for everything (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="(default: 1 2 3)")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="systems, for example 'wait-*' soft")
    parser.add_argument("--list", action="store_true", help="show the systems and their options, and end")
    parser.add_argument("--report", action="store_true", help="train nothing: report what is complete")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    return options


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse(arguments)
    return exit_code("study", lambda: study(options))


def study(options: argparse.Namespace) -> int:
    systems, line = recipe.choose(options.only), Line()
    if options.list:
        for system in systems:
            print(f"{system.key:18} {' '.join(recipe.arguments(system.options))}")
        return 0
    data = prepare_data(options.out, recipe.STUDY.sizes, line)
    runs = [make_run(system, seed, recipe.STUDY, data, options.out) for seed in options.seeds for system in systems]
    failed = [] if options.report else run_all(runs, options.jobs, line)
    line.say("\n".join(str(path) for path in report(runs, options.out, line, ("exact", "BLEU"))))
    if failed:
        line.say(f"failed: {', '.join(run.name for run in failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
