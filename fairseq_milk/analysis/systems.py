"""Systems at their settings over their seeds, from the table of a sweep or from generations."""

import logging
import math
import os
import re
from pathlib import Path
from statistics import fmean
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..console.errors import UserError
from ..console.files import read_json
from ..scoring.collapse import collapse_of
from ..scoring.score import Score, score_file
from ..scoring.table import Result, make_result, read_results
from .paper_results import TEST_SETS
from .points import Point, Range

logger = logging.getLogger(__name__)
LATENCIES = {"dal": "DAL (tokens)", "al": "AL (tokens)", "ap": "AP"}
QUALITIES = {"bleu": "BLEU", "chrf": "chrF"}  # display names of columns
LETTERS = {"latency-weight": "λ", "wait-k": "k", "chunk-size": "w"}  # the letters of the paper for options of grids
FEW = 3  # systems that are shown side by side


class System(NamedTuple):
    """One system at one setting, over its seeds."""

    name: str
    setting: str
    results: List[Result]

    @property
    def key(self) -> str:
        """The name in the sweep, for example milk-latency-weight=0.1."""
        return f"{self.name}-{self.setting}" if self.setting else self.name

    @property
    def label(self) -> str:
        """The display name, for example milk λ=0.1."""
        return f"{self.name} {self.point}".strip()

    @property
    def point(self) -> str:
        """The short setting, for example λ=0.1."""
        options = (option.partition("=") for option in self.setting.split(","))
        return ",".join(LETTERS.get(name, name) + equals + value for name, equals, value in options)

    def mean(self, measure: str) -> float:
        """The mean over the seeds.  measure: a column of the table."""
        return fmean(result.figure(measure) for result in self.results)

    def range(self, measure: str) -> Optional[Range]:
        """The range over several seeds; for one seed its confidence interval, if there is one."""
        if len(self.results) > 1:
            values = [result.figure(measure) for result in self.results]
            return min(values), max(values)
        bounds = [self.results[0].figure(f"{measure}_{end}") for end in ("low", "high")]
        return None if any(map(math.isnan, bounds)) else (bounds[0], bounds[1])

    @property
    def has_schedule(self) -> bool:
        """Whether the sentences of the first seed are there, with their delays."""
        return os.path.isfile(self.results[0].log) and math.isfinite(self.mean("dal"))

    def score(self) -> Score:
        """The score of the first seed, which must have delays, with the settings of its row."""
        score = score_file(self.results[0].log, self.results[0].metrics())
        if score.no_latency is not None:
            raise UserError(score.no_latency)
        return score


def read_systems(inputs: Sequence[str], subset: Optional[str] = None) -> List[System]:
    """The systems of tables (.csv, .json) and generations, given as FILE or NAME=FILE.  subset: see `of_one_subset`."""
    files = [_name_and_path(text) for text in inputs]
    tables = [file for file in files if _is_table(file[1])]
    logs = [file for file in files if not _is_table(file[1])]
    results = of_one_subset(_read_tables(tables), subset) + _read_logs(logs)
    if not results:
        raise UserError(f"there are no results in {', '.join(inputs)}")
    return group(results)


def _read_tables(tables: Sequence[Tuple[str, str]]) -> List[Result]:
    """The systems of tables, preceded by the name of the table: old/milk.  UserError if a run appears twice."""
    paths: Dict[Tuple[str, str, int, str], str] = {}
    results: List[Result] = []
    for name, path in tables:
        for result in read_results(path):
            if name:
                result = result._replace(system=f"{name}/{result.system}")
            run = result.system, result.setting, result.seed, result.subset
            if run in paths:
                raise UserError(
                    f"{result.name} with seed {result.seed} appears twice, in {paths[run]} and {path}: tables as "
                    "NAME=FILE are told apart by their names"
                )
            paths[run] = path
            results.append(result)
    return results


def _read_logs(logs: Sequence[Tuple[str, str]]) -> List[Result]:
    """The systems of generations.  A name is 'SYSTEM SETTING'; files with the same name are seeds of one system."""
    results: List[Result] = []
    for (name, path), distinct in zip(logs, distinct_names([path for _, path in logs])):
        system, _, setting = name.partition(" ") if name else (distinct, "", "")
        score, summary = score_file(path), read_json(Path(path).with_suffix(".json"))
        attention = summary.get("attention") if isinstance(summary, dict) else None
        collapse = collapse_of(score.records, attention)
        results.append(make_result(score, system, setting, log=path, collapse=collapse))
    return results


def of_one_subset(results: Sequence[Result], subset: Optional[str]) -> List[Result]:
    """The results on one data set: `subset`, by default the most frequent one.

    Results on different sentences cannot be compared; sweeps of the examples have results on `valid` and `test`.
    """
    by_subset: Dict[str, List[Result]] = {}
    for result in results:
        by_subset.setdefault(result.subset, []).append(result)
    wanted = subset or max(by_subset, key=lambda name: len(by_subset[name]), default="")
    if subset is not None and subset not in by_subset:
        raise UserError(f"--subset {subset}: the tables have results on {', '.join(by_subset) or 'nothing'}")
    for name, others in by_subset.items():
        if subset is None and name != wanted:
            systems = ", ".join(dict.fromkeys(result.system for result in others))
            logger.warning(f"left out, as they were decoded on '{name}' (--subset {name} shows them): {systems}")
    return by_subset.get(wanted, [])


def group(results: Sequence[Result]) -> List[System]:
    """Group the results by system and setting, in the order of the first seed."""
    systems: Dict[Tuple[str, str], System] = {}
    for result in results:
        key = result.system, result.setting
        systems.setdefault(key, System(*key, [])).results.append(result)
    return list(systems.values())


def choose(systems: Sequence[System], keys: Optional[Sequence[str]]) -> List[System]:
    """The systems with these keys; without keys those with schedules, all if they are few, otherwise two."""
    if keys is None:
        drawable = [system for system in systems if system.has_schedule]
        return drawable if len(drawable) <= FEW else comparable(drawable)
    named = {name: system for system in systems for name in (system.label, system.key)}
    for key in keys:
        if key not in named:
            known = ", ".join(system.key for system in systems)
            raise UserError(f"--show {key}: there is no such system; there are {known}")
    return [named[key] for key in dict.fromkeys(keys)]


def comparable(systems: Sequence[System]) -> List[System]:
    """MILk (else the first system) at the middle of its range of DAL, and the other system nearest to that in DAL."""
    name = next((system.name for system in systems if "milk" in system.name.casefold()), systems[0].name)
    own = sorted((system for system in systems if system.name == name), key=lambda system: system.mean("dal"))
    middle = own[(len(own) - 1) // 2]
    others = [system for system in systems if system.name != middle.name]
    return [middle, *sorted(others, key=lambda system: abs(system.mean("dal") - middle.mean("dal")))[:1]]


def curves(systems: Sequence[System], latency: str, quality: str = "bleu") -> Dict[str, List[Point]]:
    """The curves for `quality_latency_plane`, without systems that lack quality or latency."""
    points: Dict[str, List[Point]] = {}
    for s in systems:
        point = Point(s.mean(latency), s.mean(quality), s.point, s.range(latency), s.range(quality))
        if math.isfinite(point.latency) and math.isfinite(point.quality):
            points.setdefault(s.name, []).append(point)
    return points


def paper_curves(pair: str, latency: str) -> Dict[str, List[Point]]:
    """The curves of the paper for one of its `TEST_SETS`."""
    points: Dict[str, List[Point]] = {}
    for line in TEST_SETS[pair]:
        point = Point(getattr(line, latency), line.bleu, line.setting)
        points.setdefault(f"{line.system} (paper)", []).append(point)
    return points


def _name_and_path(text: str) -> Tuple[str, str]:
    """Split NAME=FILE, or FILE.  Both may contain =: the file is the part that exists."""
    if not os.path.exists(text):
        for equals in re.finditer("=", text):
            if os.path.exists(text[equals.end() :]):
                return text[: equals.start()], text[equals.end() :]
    return "", text


def _is_table(path: str) -> bool:
    return Path(path).suffix in (".csv", ".json")


def distinct_names(paths: Sequence[str]) -> List[str]:
    """The parts in which paths differ: a/milk/out.jsonl and a/wait-4/out.jsonl give milk and wait-4."""
    parts = [Path(path).with_suffix("").parts for path in paths]
    if len(set(parts)) < 2:
        return [path[-1] for path in parts]
    shortest = min(map(len, parts)) - 1
    start = min(len(os.path.commonprefix(parts)), shortest)
    end = min(len(os.path.commonprefix([path[::-1] for path in parts])), shortest - start)
    return ["/".join(path[start : len(path) - end]) for path in parts]
