"""Shell scripts that complete the missing runs: their commands one after the other, and an array job of SLURM."""

import json
import shlex
from pathlib import Path
from typing import List, Sequence

from ..console.errors import UserError
from .runs import Run, missing_runs
from .spec import Spec
from .validation import Options, as_text

FORMAT = "%s\\n"  # for printf
SCRIPT = """#!/usr/bin/env bash
{directives}
# One run of {name} per task. Its GPUs, CPUs, memory and time are set under 'slurm' in the file of the sweep.
# A requeued task continues from its last checkpoint.{order}
set -euo pipefail

runs=(
{runs}
)
exec {command} --only "${{runs[SLURM_ARRAY_TASK_ID]}}"
"""
ORDER = """
# Tasks {later} start from the models of earlier tasks and wait for these. To submit them in order:
{lines}"""


def shell_script(runs: Sequence[Run]) -> str:
    """A shell script with the commands of the missing runs, in an order in which they can be run."""
    missing = missing_runs(runs)
    lines = [shlex.join(["cd", str(run.cwd)]) for run in missing[:1] if run.cwd]
    for run in missing:
        lines += [f"# {run.name}", " &&\n".join(_by_hand(run))]
    return "\n".join(lines)


def _by_hand(run: Run) -> List[str]:
    """The commands of a run, followed by those that record their success, so that a sweep accepts the results.

    The settings are recorded after the training: until then a sweep refuses the model instead of training it too.
    """
    train, generate = map(shlex.join, run.commands())
    settings, trained, done = (str(run.folder / f"{name}.json") for name in ("settings", "trained", "done"))
    record = f"{shlex.join(['printf', FORMAT, json.dumps(run.settings())])} > {shlex.quote(settings)}"
    decode = [generate, shlex.join(["cp", settings, done])]
    if run.is_trained():
        return [shlex.join(["mkdir", "-p", str(run.folder)]), record, *decode]
    old = [done, trained, *([str(run.checkpoints)] if run.other_training() else [])]
    stale = [path for path in old if Path(path).exists()]
    clear = [shlex.join(["rm", "-rf", *stale])] if stale else []
    return [*clear, train, record, shlex.join(["cp", settings, trained]), *decode]


def slurm_script(runs: Sequence[Run], spec: Spec, task: Sequence[str], script: Path) -> str:
    """The script; empty if no run is missing.  Runs that others depend on come first.

    task: a command that completes a run if it is given `--only RUN`.  script: the path of the script.
    """
    missing = sorted(missing_runs(runs), key=depth)
    if not missing:
        return ""
    for path in (script, *map(Path, task)):
        if not str(path).isprintable():  # a line break would end a comment
            raise UserError(f"{str(path)!r} cannot be written into a SLURM script: it has control characters")
    array: Options = {"job-name": spec.name, "array": f"0-{len(missing) - 1}", "ntasks": 1, "requeue": True}
    return SCRIPT.format(
        name=spec.name,
        directives=directives({**array, **spec.slurm}),
        order=_order(missing, script),
        runs="\n".join(f"  {shlex.quote(run.name)}" for run in missing),
        command=shlex.join(task),
    )


def directives(options: Options) -> str:
    """{'gres': 'gpu:1', 'exclusive': True, 'requeue': False} -> the first two as #SBATCH lines."""
    return "\n".join(
        f"#SBATCH --{name}" if value is True else f"#SBATCH --{name}={shlex.quote(as_text(value))}"
        for name, value in options.items()
        if value is not False
    )


def depth(run: Run) -> int:
    """The number of missing runs on which a run depends."""
    return 0 if run.before is None else depth(run.before) + (0 if run.before.is_complete() else 1)


def _order(missing: Sequence[Run], script: Path) -> str:
    depths = [depth(run) for run in missing]
    if depths[-1] == 0:
        return ""
    lines: List[str] = []
    for level in range(depths[-1] + 1):
        tasks = [task for task, found in enumerate(depths) if found == level]
        after = f" --dependency=afterok:$job{level - 1}" if level else ""
        lines.append(
            f"#   job{level}=$(sbatch --parsable{after} --array={tasks[0]}-{tasks[-1]} {shlex.quote(str(script))})"
        )
    later = f"{depths.index(1)}-{len(missing) - 1}"
    return ORDER.format(later=later, lines="\n".join(lines))
