"""The file of a sweep: what is in it, and how it is read and checked.

    name: multi30k-de-en            # optional: the name of the output folder beside the file (default: the file's name)
    data: data-bin                  # the folder that fairseq-preprocess made
    train:                          # options of fairseq-train that all systems share
      arch: milk_rnmt_small
      criterion: latency_augmented_label_smoothed_cross_entropy
      optimizer: adam
      lr: 0.001
      max-tokens: 4000
      max-epoch: 12
      no-epoch-checkpoints: true    # an option without value: true gives it, false leaves it out
    generate:                       # options of fairseq-generate
      batch-size: 64
      remove-bpe: true
    checkpoint: checkpoint_best.pt  # optional: the one that is decoded, and that others start from
    seeds: [1, 2]                   # optional (default: [1]): every system is trained with each
    slurm:                          # optional: options of sbatch, what --slurm asks for each run
      gres: gpu:1
      cpus-per-task: 4
      time: 24:00:00
    systems:
      offline: {train: {arch: rnmt_offline}, generate: {beam: 20}}
      start:   {train: {attention: milk}}
      milk:    {after: start, train: {attention: milk}, grid: {latency-weight: [0.05, 0.1, 0.2]}}
      wait-k:  {train: {attention: waitk}, grid: {wait-k: [1, 2, 4, 8]}}
      mocha:   {train: {attention: mocha, latency-weight: 0.1}, grid: {chunk-size: [2, 8]}}

A system's own options come on top of the shared ones.  `grid` holds options of fairseq-train with the list of values to
try; several of them are combined in every way.  Each point of the grid and each seed is a run with a folder of its own,
milk-latency-weight=0.1-s1.  `after` starts the training from the model of another run of the same seed
(--finetune-from-model), named by its system, or by system and point, milk-latency-weight=0.1, if that has a grid.

--task simultaneous_translation and --log-format json are given unless the file has others.  Relative paths, also those
in options, are relative to the file.  Every mistake in the file is a UserError with file and key, before work starts.
"""

import itertools
import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..errors import UserError
from .yaml_file import read_yaml

Value = Union[str, int, float, bool]
Options = Mapping[str, Value]

KEYS = ("name", "data", "train", "generate", "checkpoint", "seeds", "slurm", "systems")
SYSTEM_KEYS = ("after", "train", "generate", "grid")
TRAIN: Options = {"task": "simultaneous_translation", "log-format": "json"}
GENERATE: Options = {"task": "simultaneous_translation"}
TAKEN = {  # options that the sweep gives, and what to do instead
    "train": {
        "save-dir": "the sweep chooses it",
        "restore-file": "the sweep goes on from the last checkpoint by itself",
        "finetune-from-model": "name the system to start from under 'after'",
        "seed": "list the seeds under 'seeds'",
        "user-dir": "it is always fairseq_milk",
    },
    "generate": {
        "path": "the sweep chooses it; see 'checkpoint'",
        "results-path": "the sweep chooses it",
        "user-dir": "it is always fairseq_milk",
    },
}
SLURM_TAKEN = {"array": "the sweep numbers its runs", "ntasks": "a run is one task"}
LONGEST = 200  # name of a folder; most file systems take 255
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=,-]*")  # safe as the name of a folder, in a shell and in a pattern


@dataclass(frozen=True)
class Point:
    """A system at one point of its grid.  after: the key of the point that it starts from, or empty."""

    system: str
    setting: str
    train: Options
    generate: Options
    after: str

    @property
    def key(self) -> str:
        """milk, or milk-latency-weight=0.1."""
        return f"{self.system}-{self.setting}" if self.setting else self.system


@dataclass(frozen=True)
class Spec:
    """A sweep as its file has it, in the order of the file."""

    path: Path
    name: str
    data: Path
    checkpoint: str
    seeds: Tuple[int, ...]
    slurm: Options
    points: Tuple[Point, ...]


def words(options: Options) -> List[str]:
    """{'noise': 2, 'cpu': True, 'fp16': False} -> ['--noise', '2', '--cpu']."""
    found: List[str] = []
    for name, value in options.items():
        if value is not False:
            found += [f"--{name}"] if value is True else [f"--{name}", as_text(value)]
    return found


def as_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_spec(path: Union[str, Path]) -> Spec:
    """The file, checked in itself; whether fairseq knows the options is for `options.check_options`."""
    path = Path(path).resolve()
    top = _Place(path, "")
    fields = top.mapping(read_yaml(path), KEYS)
    for key in ("data", "systems"):
        if key not in fields:
            raise top.wrong(f"there is no '{key}'")
    spec = Spec(
        path=path,
        name=top.at("name").name(fields.get("name", path.stem)),
        data=top.at("data").data(fields["data"]),
        checkpoint=top.at("checkpoint").name(fields.get("checkpoint", "checkpoint_best.pt")),
        seeds=top.at("seeds").seeds(fields.get("seeds", [1])),
        slurm=top.at("slurm").lines(fields.get("slurm", {}), SLURM_TAKEN),
        points=tuple(_points(top, fields)),
    )
    _check_names(top, spec)
    _check_after(top, spec)
    return spec


def _points(top: "_Place", fields: Mapping[str, Any]) -> List[Point]:
    shared = {kind: top.at(kind).options(fields.get(kind, {}), TAKEN[kind]) for kind in TAKEN}
    systems = top.at("systems")
    points: List[Point] = []
    for name, value in systems.mapping(fields["systems"]).items():
        place = systems.at(name)
        place.name(name)
        system = place.mapping({} if value is None else value, SYSTEM_KEYS)
        own = {kind: place.at(kind).options(system.get(kind, {}), TAKEN[kind]) for kind in TAKEN}
        after = place.at("after").name(system["after"]) if "after" in system else ""
        generate = {**GENERATE, **shared["generate"], **own["generate"]}
        for point in place.at("grid").grid(system.get("grid", {}), own["train"]):
            setting = ",".join(f"{option}={as_text(value)}" for option, value in point.items())
            points.append(Point(name, setting, {**TRAIN, **shared["train"], **own["train"], **point}, generate, after))
    if not points:
        raise systems.wrong("there is no system")
    return points


def _check_names(top: "_Place", spec: Spec) -> None:
    """No two runs in one folder, also where case makes no difference, and no name too long for one."""
    seen: Dict[str, str] = {}
    for point, seed in itertools.product(spec.points, spec.seeds):
        name, place = f"{point.key}-s{seed}", top.at("systems").at(point.system)
        if name.lower() in seen:
            raise place.wrong(f"the run {name} is there twice (the other is {seen[name.lower()]})")
        if len(name) > LONGEST:
            raise place.wrong(f"{name[:40]}... is too long for the name of a folder")
        seen[name.lower()] = f"systems.{point.system}"


def _check_after(top: "_Place", spec: Spec) -> None:
    points = {point.key: point for point in spec.points}
    for point in spec.points:
        place = top.at("systems").at(point.system).at("after")
        chain = [point.key]
        while points[chain[-1]].after:
            after = points[chain[-1]].after
            if after not in points:
                grid = [key for key, other in points.items() if other.system == after]
                hint = f"it has a grid: name one of {', '.join(grid)}" if grid else _suggestion(after, points)
                raise place.wrong(f"there is no run '{after}'{': ' if grid else ''}{hint}")
            chain.append(after)
            if after in chain[:-1]:
                raise place.wrong(f"the systems start from one another: {' after '.join(chain)}")


def _suggestion(word: str, known: Any) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f", did you mean '{close[0]}'?" if close else f" (there are {', '.join(known)})"


class _Place(NamedTuple):
    """Where we are in the file, and what may be there.  The checks return the value, in the type that is wanted."""

    file: Path
    key: str

    def at(self, key: Any) -> "_Place":
        return _Place(self.file, f"{self.key}.{key}" if self.key else str(key))

    def wrong(self, problem: str) -> UserError:
        return UserError(f"{self.file}: {self.key}: {problem}" if self.key else f"{self.file}: {problem}")

    def mapping(self, value: Any, keys: Optional[Sequence[str]] = None) -> Dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(f"'key: value' lines are expected here, got {_kind(value)}")
        for key in value:
            if not isinstance(key, str):
                raise self.wrong(f"the key {key!r} should be text: put it in quotes")
            if keys is not None and key not in keys:
                raise self.wrong(f"unknown key '{key}'{_suggestion(key, keys)}")
        return value

    def text(self, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self.wrong(f"text is expected here, got {_kind(value)}")
        return value

    def name(self, value: Any) -> str:
        """What becomes the name of a folder or a file in the output folder, and nowhere else."""
        name = self.text(value)
        if not NAME.fullmatch(name) or ".." in name or len(name) > LONGEST:
            shown = repr(name[:60])
            raise self.wrong(f"{shown} cannot be a name: it is made of letters, digits and _ . + - = , without '..'")
        return name

    def data(self, value: Any) -> Path:
        folder = self.file.parent / Path(self.text(value)).expanduser()
        if not folder.is_dir():
            raise self.wrong(f"there is no folder {folder}: run fairseq-preprocess --destdir {folder} first")
        return folder.resolve()

    def seeds(self, value: Any) -> Tuple[int, ...]:
        if not isinstance(value, list) or not value:
            raise self.wrong(f"a list of whole numbers is expected here, got {_kind(value)}")
        for seed in value:
            if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**31:
                raise self.wrong(f"a seed is a whole number from 0 to 2147483647, got {seed!r}")
        if len(set(value)) < len(value):
            raise self.wrong(f"a seed is there twice: {value}")
        return tuple(value)

    def options(self, value: Any, taken: Mapping[str, str]) -> Dict[str, Value]:
        found = self.mapping({} if value is None else value)
        for name, option in found.items():
            self._option(name, taken)
            self.at(name)._value(option)
        return found

    def lines(self, value: Any, taken: Mapping[str, str]) -> Dict[str, Value]:
        """Options that are written a line each."""
        for name, option in self.mapping({} if value is None else value).items():
            if isinstance(option, list) or not as_text(option).isprintable():
                raise self.at(name).wrong(f"one line is expected here, got {_kind(option)}")
        return self.options(value, taken)

    def grid(self, value: Any, own: Options) -> List[Dict[str, Value]]:
        """The points of the grid, one without options if there is no grid."""
        found = self.mapping(value)
        for name, values in found.items():
            place = self.at(name)
            self._option(name, TAKEN["train"])
            if name in own:
                raise place.wrong("the option is under 'train' of the system too")
            if not isinstance(values, list) or not values:
                raise place.wrong(f"a list of values is expected here, got {_kind(values)}")
            for option in values:
                place.name(f"{name}={as_text(place._value(option))}")
        return [dict(zip(found, point)) for point in itertools.product(*found.values())]

    def _option(self, name: str, taken: Mapping[str, str]) -> None:
        if name in taken:
            raise self.wrong(f"'{name}' cannot be given: {taken[name]}")
        if name.startswith("-"):
            raise self.wrong(f"write '{name.lstrip('-')}' for the option {name}")
        if not NAME.fullmatch(name):
            raise self.wrong(f"{name!r} is not an option")

    def _value(self, value: Any) -> Value:
        if isinstance(value, list):
            raise self.wrong("a list of values belongs under 'grid'; a list for fairseq is one text, '0.9,0.98'")
        if not isinstance(value, (str, int, float)):  # bool is an int
            raise self.wrong(f"a number, a text, true or false is expected here, got {_kind(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(f"a finite number is expected here, got {value}")
        if isinstance(value, str) and (not value or "\0" in value):
            raise self.wrong(f"a text with something in it is expected here, got {value!r}")
        return value


def _kind(value: Any) -> str:
    """What YAML found, in the words of somebody who wrote it."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, dict):
        return "'key: value' lines"
    return "a list" if isinstance(value, list) else repr(value)[:60]
