"""The study: every system of the recipe, with several seeds."""

import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

from examples.verb_final import recipe
from examples.verb_final.commands import RunError
from examples.verb_final.corpus import prepare_data
from examples.verb_final.progress import Line
from examples.verb_final.runner import Run, run_all

OUT = Path(__file__).resolve().parents[2] / "study"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="examples/verb_final/run.sh", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for everything (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="(default: 1 2 3)")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="systems by name: 'milk-*' wait-3")
    options = parser.parse_args(arguments)
    line = Line()
    try:
        data = prepare_data(options.out, recipe.STUDY.sizes, line)
        systems = recipe.choose(options.only)
        runs = [Run(system, seed, recipe.STUDY, data, options.out) for seed in options.seeds for system in systems]
        failed = run_all(runs, options.jobs, line)
    except (RunError, ValueError) as error:
        print(f"study: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("study: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
