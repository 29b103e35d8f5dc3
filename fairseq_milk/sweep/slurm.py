"""A SLURM array with a task for each run that is missing."""

import shlex
from pathlib import Path
from typing import List, Sequence

from .commands import shell_line
from .runs import Run, with_predecessors

SCRIPT = """#!/usr/bin/env bash
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --requeue
# One run of {name} a task. Add what your cluster wants: #SBATCH --gpus=1, --cpus-per-task, --mem, --time ...
# A task that is requeued goes on from its last checkpoint.{order}
set -euo pipefail

runs=(
{runs}
)
exec {command} --only "${{runs[SLURM_ARRAY_TASK_ID]}}"
"""
ORDER = """
# Tasks {later} start from the models of earlier ones and wait for them if they come too soon. So that none waits:
{lines}"""


def slurm_script(runs: Sequence[Run], name: str, task: Sequence[str], script: Path) -> str:
    """Empty if nothing is missing.  Runs that others start from come first.

    task: the words of a command that completes a run if it is given `--only RUN`.  script: where it will be.
    """
    missing = [run for run in with_predecessors(runs) if not run.is_complete()]
    missing.sort(key=depth)
    if not missing:
        return ""
    return SCRIPT.format(
        name=name,
        last=len(missing) - 1,
        order=_order(missing, script),
        runs="\n".join(f"  {shlex.quote(run.name)}" for run in missing),
        command=shell_line(task),
    )


def depth(run: Run) -> int:
    """How many missing runs have to come before it."""
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
