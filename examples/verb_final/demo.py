"""The demo: trains a tiny MILk and a wait-k of about the same lag, compares them, and exports them for a web page."""

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Optional, Sequence

from examples.verb_final import program, recipe

OUT = {fast: Path(__file__).resolve().parents[2] / name for fast, name in ((False, "demo"), (True, "demo-fast"))}
SEED, JOBS = 1, 2


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo.sh", description=__doc__)
    parser.add_argument("--out", type=Path, help=f"folder for everything (default: {OUT[False]}; --fast: {OUT[True]})")
    parser.add_argument("--fast", action="store_true", help="run every step in seconds, without learning anything")
    options = parser.parse_args(arguments)
    out, scale = options.out or OUT[options.fast], recipe.FAST if options.fast else recipe.DEMO
    return program.run("demo", f"starting fairseq; everything goes to {out}", lambda: demo(out, scale))


def demo(out: Path, scale: recipe.Scale) -> int:
    from examples.verb_final.corpus import prepare_data
    from examples.verb_final.page import prepare_page
    from examples.verb_final.report import report
    from examples.verb_final.runs import make_run
    from fairseq_milk.console.durations import duration
    from fairseq_milk.console.progress import Line
    from fairseq_milk.sweep.scheduler import run_all

    began, line = time.monotonic(), Line()
    data = prepare_data(out, scale.sizes, line)
    runs = [make_run(system, SEED, scale, data, out) for system in recipe.choose(recipe.DEMO_SYSTEMS)]
    for run in runs:
        if run.other_training() and not run.is_complete():
            line.say(f"{run.folder} was trained with other settings: it is trained again")
    if run_all(runs, JOBS, line):
        return 1
    line.say("\n".join(str(path) for path in report(runs, out, line)))
    command = prepare_page(runs, data, out, line)
    line.say(f"finished in {duration(time.monotonic() - began)}, {memory()}")
    line.say(f"to see both translate while you type: {command}")
    return 0


def memory() -> str:
    """An upper bound of the memory: the peak of this process plus the peaks of the commands that ran beside it."""
    megabyte = 2**20 if sys.platform == "darwin" else 2**10  # in units of ru_maxrss
    own, command = (
        resource.getrusage(who).ru_maxrss // megabyte for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return f"in at most {own + JOBS * command} MB: {own} here and {JOBS} commands of up to {command} at once"


if __name__ == "__main__":
    sys.exit(main())
