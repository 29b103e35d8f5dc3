"""fairseq-milk sweep: trains and decodes the systems of a file over their grids, and updates the table of results."""

import argparse
import os
import shlex
from pathlib import Path
from typing import Sequence

from ..console.errors import RunError, UserError, require
from ..console.exit_codes import exit_code
from ..console.files import write_atomically
from ..console.processes import command
from ..console.progress import Line
from ..sweep import spec as spec_file
from ..sweep.options import check_options
from ..sweep.runs import Run, choose, make_runs, missing_runs
from ..sweep.scheduler import run_all
from ..sweep.score import update_table
from ..sweep.shell_scripts import shell_script, slurm_script
from ..sweep.spec import Spec, read_spec
from ..sweep.summary import summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = __doc__
    parser.epilog = spec_file.__doc__
    parser.add_argument("file", type=Path, help="YAML file that describes the sweep (see below)")
    parser.add_argument("--out", type=Path, help="output folder (default: the sweep's name, beside the file)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of parallel runs (1)")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PATTERN", help="only these runs or systems, e.g. 'milk-*' soft"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the commands of the missing runs")
    parser.add_argument("--slurm", type=Path, metavar="FILE", help="write a SLURM array job of the missing runs")
    parser.add_argument("--retrain", action="store_true", help="replace models that were trained with other settings")


def run(args: argparse.Namespace) -> int:
    return exit_code("fairseq-milk sweep", lambda: sweep(args))


def sweep(args: argparse.Namespace) -> int:
    """The exit code: 0 if all runs are complete, 1 if one failed."""
    require(args.jobs >= 1, "jobs", args.jobs, "must be at least 1")
    spec = read_spec(args.file)
    check_options(spec)
    out = Path(os.path.abspath(args.out or spec.path.parent / spec.name))
    runs = make_runs(spec, out)
    chosen = choose(runs, args.only)
    if not args.retrain:
        refuse_other_trainings(chosen)
    if args.slurm is not None:
        return write_slurm(args, spec, chosen, out)
    if args.dry_run:
        print(shell_script(chosen) or "# nothing is missing")
        return 0
    return complete(runs, chosen, out, args.jobs)


def complete(runs: Sequence[Run], chosen: Sequence[Run], out: Path, jobs: int) -> int:
    """Run what is missing among the chosen runs; the table has all complete runs."""
    line = Line()
    failed = run_all(chosen, jobs, line, finished=lambda run: keep_table(runs, out, line))
    results = update_table(runs, out)
    if results:
        line.say(f"\n{summary(results)}\n\n{out / 'results.csv'}")
    if failed:
        line.say(f"failed: {', '.join(run.name for run in failed)}")
    return 1 if failed else 0


def keep_table(runs: Sequence[Run], out: Path, line: Line) -> None:
    """Update the table after a run.  An error does not stop the other runs; it is raised again at the end."""
    try:
        update_table(runs, out)
    except (OSError, RunError) as error:
        line.say(f"the table could not be written: {error}")


def refuse_other_trainings(chosen: Sequence[Run]) -> None:
    """Raise a UserError if a run would replace a model that was trained with other settings."""
    missing = missing_runs(chosen)
    other = [f"{run.folder} ({problem})" for run in missing if (problem := run.other_training())]
    if other:
        raise UserError(
            f"there are models that were trained with other settings: {'; '.join(other)}; "
            "give --retrain to train them again, or another --out"
        )


def write_slurm(args: argparse.Namespace, spec: Spec, chosen: Sequence[Run], out: Path) -> int:
    task = ["sweep", str(spec.path), "--out", str(out), *(["--retrain"] if args.retrain else [])]
    text = slurm_script(chosen, spec, [command("fairseq-milk"), *task], args.slurm)
    if text:
        write_atomically(args.slurm, text)
    print(f"sbatch {shlex.quote(str(args.slurm))}" if text else "nothing is missing")
    return 0
