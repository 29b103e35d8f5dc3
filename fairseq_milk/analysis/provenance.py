"""The last section of the report: versions, files and commands of the models and of the page."""

import platform
from math import isnan
from pathlib import Path
from typing import Any, Dict, List, Sequence

import matplotlib
import sacrebleu

from ..console.durations import duration
from ..scoring.table import Result
from ..version import __version__
from .looks import display_name
from .page import Cell, Table
from .systems import System

COMMANDS = "commands.sh"
HEADING = ("system", "setting", "started from", "commit", "seed", "training", "decoding")


def provenance(systems: Sequence[System]) -> Dict[str, Any]:
    versions = (
        f"fairseq_milk {__version__}, Python {platform.python_version()}, matplotlib {matplotlib.__version__}, "
        f"sacreBLEU {sacrebleu.__version__}"
    )
    rows = [_row(system, result) for system in systems for result in system.results]
    table = Table([Cell(name) for name in HEADING], rows, texts=4)
    return {"versions": versions, "warnings": _commit_warnings(systems), "table": table, "runs": _runs(systems)}


def _row(system: System, result: Result) -> List[Cell]:
    times = ["–" if isnan(time) else duration(time) for time in (result.train_seconds, result.generate_seconds)]
    made = [Cell(text, kind="code") for text in (result.warm_start, result.commit)]
    return [Cell(display_name(result.system)), Cell(system.point), *made, Cell(result.seed), *map(Cell, times)]


def _commit_warnings(systems: Sequence[System]) -> List[str]:
    """Warnings if the models were made by different versions, or by one with uncommitted changes."""
    cells = [result.commit for system in systems for result in system.results]
    commits = sorted({commit for cell in cells for commit in cell.split(", ")} - {""})
    dirty = [commit for commit in commits if commit.endswith("-dirty")]
    warnings = []
    if len(commits) > 1:
        warnings.append(f"Not all rows were made by the same version of fairseq_milk: {', '.join(commits)}.")
    if dirty:
        warnings.append(f"Some rows were made with uncommitted changes: {', '.join(dirty)}.")
    return warnings


def _runs(systems: Sequence[System]) -> List[Dict[str, Any]]:
    """The files of each run that names any, preceded by those of runs without a row that others started from."""
    results = [
        (f"{display_name(system.label)}, seed {result.seed}", result)
        for system in systems
        for result in system.results
        if result.log or result.checkpoint
    ]
    runs = [_files(name, _folder(result), log=result.log, checkpoint=result.checkpoint) for name, result in results]
    folders = {_folder(result): result.warm_start for _, result in results}
    starts = dict.fromkeys(folder.parent / name for folder, name in folders.items() if name)
    unlisted = [start for start in starts if start not in folders and (start / COMMANDS).is_file()]
    return [*(_files(start.name, start) for start in unlisted), *runs]


def _folder(result: Result) -> Path:
    """The folder of a run, whose log is FOLDER/results/generate-<subset>.jsonl."""
    return Path(result.log).absolute().parent.parent


def _files(name: str, folder: Path, **files: str) -> Dict[str, Any]:
    """The files of a run, and the commands that a sweep has written to its folder (None for other runs)."""
    script = folder / COMMANDS
    commands = script.read_text(encoding="utf-8", errors="replace").splitlines() if script.is_file() else None
    return {"name": name, "files": files, "script": script, "commands": commands}
