"""The study: trains and compares every system of the recipe with several seeds."""

import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

from examples.verb_final import program, recipe

OUT = Path(__file__).resolve().parents[2] / "study"


def parse(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples/verb_final/run.sh", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="output folder (default: %(default)s)")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds of the trainings (default: 1 2 3)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel trainings (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="systems, for example 'wait-*' soft")
    parser.add_argument("--list", action="store_true", help="print the systems and their options, and exit")
    parser.add_argument("--report", action="store_true", help="report the complete runs without training")
    parser.add_argument("--retrain", action="store_true", help="replace models that were trained with other settings")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    try:
        options.systems = recipe.choose(options.only)
    except ValueError as error:
        parser.error(str(error))
    options.seeds = list(dict.fromkeys(options.seeds))
    return options


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse(arguments)
    if options.list:
        for system in options.systems:
            print(f"{system.key:18} {' '.join(recipe.arguments(system.options))}")
        return 0
    return program.run("study", f"starting fairseq; everything goes to {options.out}", lambda: study(options))


def study(options: argparse.Namespace) -> int:
    from examples.verb_final.corpus import draw_files, folder_of, prepare_data
    from examples.verb_final.report import report
    from examples.verb_final.runs import make_run
    from fairseq_milk.cli.sweep import refuse_other_trainings
    from fairseq_milk.console.progress import Line
    from fairseq_milk.sweep.scheduler import run_all

    out, scale, line = options.out, recipe.STUDY, Line()
    data = folder_of(out, draw_files(scale.sizes)) if options.report else prepare_data(out, scale.sizes, line)
    runs = [make_run(system, seed, scale, data, out) for seed in options.seeds for system in options.systems]
    if not options.report and not options.retrain:
        refuse_other_trainings(runs)
    failed = [] if options.report else run_all(runs, options.jobs, line)
    line.say("\n".join(str(path) for path in report(runs, out, line, ("exact", "bleu"))))
    if failed:
        line.say(f"failed: {', '.join(run.name for run in failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
