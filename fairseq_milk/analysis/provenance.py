"""The last section of the report: how the models, and the page itself, were made."""

import platform
from math import isnan
from pathlib import Path
from typing import List, Sequence

import matplotlib
import sacrebleu

from ..console.durations import duration
from ..scoring.table import Result
from ..version import __version__
from .html import Markup, element, join, listing, section, table
from .systems import System

COMMANDS = "commands.sh"


def provenance(systems: Sequence[System], command: str) -> Markup:
    versions = (
        f"fairseq_milk {__version__}, Python {platform.python_version()}, matplotlib {matplotlib.__version__}, "
        f"sacreBLEU {sacrebleu.__version__}"
    )
    terms = [("command", element("code", command)), ("versions", versions)]
    runs = [_runs(systems), element("h3", "Files and commands"), *_details(systems)]
    return section("How this was made", listing(terms), *_commit_warnings(systems), *runs)


def _runs(systems: Sequence[System]) -> Markup:
    heading = ["system", "setting", "started from", "commit", "seed", "training", "decoding"]
    rows = [
        [
            result.system,
            system.point,
            *(element("code", text) for text in (result.warm_start, result.commit)),
            result.seed,
            *("–" if isnan(time) else duration(time) for time in (result.train_seconds, result.generate_seconds)),
        ]
        for system in systems
        for result in system.results
    ]
    return table(heading, rows, texts=4)


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


def _details(systems: Sequence[System]) -> List[Markup]:
    """Folded up: the files and commands of each run, and before them the commands of those that others started from."""
    results = [(f"{system.label}, seed {result.seed}", result) for system in systems for result in system.results]
    runs = [
        _folded(name, log=result.log, checkpoint=result.checkpoint, commands=_commands(_folder(result)))
        for name, result in results
    ]
    folders = {_folder(result): result.warm_start for _, result in results}
    starts = dict.fromkeys(folder.parent / name for folder, name in folders.items() if name)
    unlisted = [start for start in starts if start not in folders and (start / COMMANDS).is_file()]
    return [*(_folded(start.name, commands=_commands(start)) for start in unlisted), *runs]


def _folder(result: Result) -> Path:
    """Of the run, whose log is FOLDER/results/generate-<subset>.jsonl."""
    return Path(result.log).absolute().parent.parent


def _commands(folder: Path) -> Markup:
    """What a sweep has left in the folder of the run, line by line."""
    path = folder / COMMANDS
    if not path.is_file():
        return join([element("code", path), " is not here"])
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return join([element("p", _code(line)) for line in lines])


def _code(line: str) -> Markup:
    """Words that the end of a line does not break, as it would after the hyphens of an option."""
    return element("code", *(join([element("span", word), " "]) for word in line.split(" ")))


def _folded(name: str, **terms: str) -> Markup:
    texts = [(term, text if isinstance(text, Markup) else element("code", text)) for term, text in terms.items()]
    return element("details", element("summary", name), listing(texts))
