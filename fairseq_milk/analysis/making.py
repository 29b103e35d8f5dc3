"""The last section of the report: how the models, and the page itself, were made."""

import platform
from math import isnan
from pathlib import Path
from typing import Dict, List, Sequence

import matplotlib
import sacrebleu

from ..sweep.progress import duration
from ..version import __version__
from .html import Markup, element, listing, section, table
from .systems import System


def making(systems: Sequence[System], command: str) -> Markup:
    versions = (
        f"fairseq_milk {__version__}, Python {platform.python_version()}, matplotlib {matplotlib.__version__}, "
        f"sacreBLEU {sacrebleu.__version__}"
    )
    terms = [("command", element("code", command)), ("versions", versions)]
    return section("How this was made", listing(terms), *_commit_warnings(systems), _runs(systems), *_commands(systems))


def _runs(systems: Sequence[System]) -> Markup:
    heading = ["system", "setting", "log", "checkpoint", "started from", "commit", "seed", "training", "decoding"]
    rows = [
        [
            result.system,
            system.point,
            *(element("code", text) for text in (result.log, result.checkpoint, result.warm_start, result.commit)),
            result.seed,
            *("–" if isnan(time) else duration(time) for time in (result.train_seconds, result.generate_seconds)),
        ]
        for system in systems
        for result in system.results
    ]
    return table(heading, rows, texts=6)


def _commit_warnings(systems: Sequence[System]) -> List[Markup]:
    """What is said of models that were not all made by one version, or by one that nobody can get back."""
    cells = [result.commit for system in systems for result in system.results]
    commits = sorted({commit for cell in cells for commit in cell.split(", ")} - {""})
    dirty = [commit for commit in commits if commit.endswith("-dirty")]
    warnings = []
    if len(commits) > 1:
        warnings.append(f"Not all rows were made by the same version of fairseq_milk: {', '.join(commits)}.")
    if dirty:
        warnings.append(f"Some rows were made with changes that are in no commit: {', '.join(dirty)}.")
    return [element("p", warning, class_="warning") for warning in warnings]


def _commands(systems: Sequence[System]) -> List[Markup]:
    """commands.sh, which a sweep leaves in the folder of each run, folded up."""
    there = [_folded(name, path) for path, name in _command_files(systems).items() if path.is_file()]
    if not there:
        return [element("p", "The commands of the runs (commands.sh of a sweep) are not here.", class_="quiet")]
    return [
        element("h3", "Commands"),
        element("p", "What was run for each, as its commands.sh says.", class_="quiet"),
        *there,
    ]


def _command_files(systems: Sequence[System]) -> Dict[Path, str]:
    """Where that of each run should be, and of each that another started from -> the name of the run."""
    files: Dict[Path, str] = {}
    starts: Dict[Path, str] = {}
    for system in systems:
        for result in system.results:
            folder = Path(result.log).absolute().parent.parent  # it is FOLDER/results/generate-<subset>.jsonl
            files[folder / "commands.sh"] = f"{system.label}, seed {result.seed}"
            if result.warm_start:
                starts[folder.parent / result.warm_start / "commands.sh"] = result.warm_start
    return {**starts, **files}


def _folded(name: str, path: Path) -> Markup:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return element("details", element("summary", name), *(element("p", element("code", line)) for line in lines))
