"""The demo: a tiny MILk and a wait-k of about the same lag, trained, decoded, scored and drawn in a few minutes."""

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Optional, Sequence

from examples.verb_final import recipe
from examples.verb_final.corpus import prepare_data
from examples.verb_final.report import report
from examples.verb_final.runs import make_run
from fairseq_milk.sweep.commands import exit_code
from fairseq_milk.sweep.progress import Line, duration
from fairseq_milk.sweep.scheduler import run_all

OUT = Path(__file__).resolve().parents[2] / "demo"
SEED, JOBS = 1, 2


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo.sh", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for everything (default: %(default)s)")
    parser.add_argument("--fast", action="store_true", help="seconds instead of minutes: all runs, nothing is learned")
    options = parser.parse_args(arguments)
    return exit_code("demo", lambda: demo(options.out, recipe.FAST if options.fast else recipe.DEMO))


def demo(out: Path, scale: recipe.Scale) -> int:
    began, line = time.monotonic(), Line()
    data = prepare_data(out, scale.sizes, line)
    systems = recipe.choose(recipe.DEMO_SYSTEMS)
    runs = [make_run(system, SEED, scale, data, out) for system in systems]
    if run_all(runs, JOBS, line):
        return 1
    line.say("\n".join(str(path) for path in report(runs, out, line)))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // (2**20 if sys.platform == "darwin" else 2**10)
    memory = f", with at most {JOBS} commands of {peak} MB at once" if peak else ""
    line.say(f"finished in {duration(time.monotonic() - began)}{memory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
