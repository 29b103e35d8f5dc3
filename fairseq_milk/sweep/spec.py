"""Reads and checks the file of a sweep:

    name: multi30k-de-en            # optional: the name of the output folder beside the file (default: the file's name)
    data: data-bin                  # the folder that fairseq-preprocess made
    train:                          # options of fairseq-train for all systems
      arch: milk_rnmt_small
      criterion: latency_augmented_label_smoothed_cross_entropy
      optimizer: adam
      lr: 0.001
      max-tokens: 4000
      max-epoch: 12
      no-epoch-checkpoints: true    # an option without value: true sets it, false omits it
    generate:                       # options of fairseq-generate
      batch-size: 64
      remove-bpe: true
    checkpoint: checkpoint_best.pt  # optional: the checkpoint to decode and to start other runs from
    seeds: [1, 2]                   # optional (default: [1]): seeds, one training per system and seed
    references:                     # optional: published text of a data set for BLEU, one sentence per line
      test: raw/test.en
    slurm:                          # optional: options of sbatch for each run, used by --slurm
      gres: gpu:1
      cpus-per-task: 4
      time: 24:00:00
    systems:
      offline: {train: {arch: rnmt_offline}, generate: {beam: 20}}
      start:   {train: {attention: milk}}
      milk:    {after: start, train: {attention: milk}, grid: {latency-weight: [0.05, 0.1, 0.2]}}
      wait-k:  {train: {attention: waitk}, grid: {wait-k: [1, 2, 4, 8]}}
      mocha:   {train: {attention: mocha, latency-weight: 0.1}, grid: {chunk-size: [2, 8]}, seeds: [1]}
      greedy:  {model: offline, generate: {beam: 1}}
      on-val:  {model: milk, generate: {gen-subset: valid}}

The options of a system are added to the shared ones.  `grid` lists values for options of fairseq-train; several options
give all their combinations.  Each point of the grid and each seed is a run with its own folder, for example
milk-latency-weight=0.1-s1.  `after` starts the training from the model of another run (--finetune-from-model), named
by its system, or by system and point, milk-latency-weight=0.1, if that has a grid.  It is the run of the same seed;
with a seed in the name, start-s1, all seeds start from that one model.  A system can have `seeds` of its own.
`model` trains nothing: it decodes the models of another system, or of one point of its grid, with other options;
`grid` then lists values for options of fairseq-generate.

A value cannot begin with '-' unless it is a number, so that it cannot add another option.  Nevertheless run only sweep
files that you trust: their options decide which files fairseq reads and writes and which classes it builds.

--task simultaneous_translation and --log-format json are the defaults.  Relative paths, also in options, are relative
to the file.  Every error in the file is reported with file and key before work starts.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from .validation import LONGEST, Location, Options, as_text, suggestion
from .yaml_file import read_yaml

KEYS = ("name", "data", "train", "generate", "checkpoint", "seeds", "references", "slurm", "systems")
SYSTEM_KEYS = ("after", "train", "generate", "grid", "seeds")
DECODED_KEYS = ("model", "generate", "grid")
TRAIN: Options = {"task": "simultaneous_translation", "log-format": "json"}
GENERATE: Options = {"task": "simultaneous_translation"}
TAKEN = {  # options that the sweep sets itself, and what to do instead
    "train": {
        "save-dir": "the sweep chooses it",
        "restore-file": "the sweep continues from the last checkpoint by itself",
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


@dataclass(frozen=True)
class Point:
    """A system at one point of its grid.

    after: the key of the point whose model it starts from, with or without a seed, or empty.  model: the key of the
    point whose model it decodes without training, or empty; `train` then has the options of that training.
    """

    system: str
    setting: str
    train: Options
    generate: Options
    seeds: Tuple[int, ...]
    after: str = ""
    model: str = ""

    @property
    def key(self) -> str:
        """For example milk, or milk-latency-weight=0.1."""
        return f"{self.system}-{self.setting}" if self.setting else self.system


@dataclass(frozen=True)
class Spec:
    """The content of a sweep file, in its order."""

    path: Path
    name: str
    data: Path
    checkpoint: str
    references: Mapping[str, Path]  # by fairseq's name of the data set
    slurm: Options
    points: Tuple[Point, ...]

    @property
    def seeds(self) -> Tuple[int, ...]:
        """The seeds of all systems."""
        return tuple(dict.fromkeys(seed for point in self.points for seed in point.seeds))

    def start(self, point: Point, seed: int) -> Tuple[str, int]:
        """The key and the seed of the run that `point` starts from, or decodes, with this seed."""
        name = point.after or point.model
        keys = [other.key for other in self.points]
        runs = {f"{other.key}-s{number}": (other.key, number) for other in self.points for number in other.seeds}
        return (name, seed) if name in keys else runs.get(name, (name, seed))


def words(options: Options) -> List[str]:
    """{'noise': 2, 'cpu': True, 'fp16': False} -> ['--noise', '2', '--cpu']."""
    found: List[str] = []
    for name, value in options.items():
        if value is not False:
            found += [f"--{name}"] if value is True else [f"--{name}", as_text(value)]
    return found


def read_spec(path: Union[str, Path]) -> Spec:
    """Read and check a sweep file.  Whether fairseq knows the options is checked by `options.check_options`."""
    path = Path(path).resolve()
    top = Location(path, "")
    fields = top.mapping(read_yaml(path), KEYS)
    for key in ("data", "systems"):
        if key not in fields:
            raise top.wrong(f"there is no '{key}'")
    spec = Spec(
        path=path,
        name=top.at("name").name(fields.get("name", path.stem)),
        data=top.at("data").data(fields["data"]),
        checkpoint=top.at("checkpoint").name(fields.get("checkpoint", "checkpoint_best.pt")),
        references=top.at("references").files(fields.get("references", {})),
        slurm=top.at("slurm").lines(fields.get("slurm", {}), SLURM_TAKEN),
        points=tuple(_points(top, fields)),
    )
    _check_names(top, spec)
    _check_after(top, spec)
    return spec


def _points(top: Location, fields: Mapping[str, Any]) -> List[Point]:
    shared = {kind: top.at(kind).options(fields.get(kind, {}), TAKEN[kind]) for kind in TAKEN}
    train, generate = {**TRAIN, **shared["train"]}, {**GENERATE, **shared["generate"]}
    seeds = top.at("seeds").seeds(fields.get("seeds", [1]))
    place = top.at("systems")
    systems = place.mapping(fields["systems"])
    for name in systems:
        place.at(name).name(name)
    decoded = [name for name, system in systems.items() if isinstance(system, dict) and "model" in system]
    trained: List[Point] = []
    for name in systems:
        if name not in decoded:
            trained += _trained(place.at(name), name, systems[name], train, generate, seeds)
    points = list(trained)
    for name in decoded:
        points += _decoded(place.at(name), name, systems[name], generate, trained)
    if not points:
        raise place.wrong("there is no system")
    return sorted(points, key=lambda point: list(systems).index(point.system))


def _trained(
    place: Location, name: str, value: Any, train: Options, generate: Options, seeds: Tuple[int, ...]
) -> List[Point]:
    system = place.mapping({} if value is None else value, SYSTEM_KEYS)
    own = {kind: place.at(kind).options(system.get(kind, {}), TAKEN[kind]) for kind in TAKEN}
    after = place.at("after").name(system["after"]) if "after" in system else ""
    train, generate = {**train, **own["train"]}, {**generate, **own["generate"]}
    grid = place.at("grid").grid(system.get("grid", {}), TAKEN["train"], own["train"])
    seeds = place.at("seeds").seeds(system["seeds"]) if "seeds" in system else seeds
    return [Point(name, _setting(point), {**train, **point}, generate, seeds, after=after) for point in grid]


def _decoded(place: Location, name: str, value: Any, generate: Options, trained: Sequence[Point]) -> List[Point]:
    """The points of a system without training: one per decoded model and point of the grid."""
    system = place.mapping(value, DECODED_KEYS)
    model = place.at("model").name(system["model"])
    models = [point for point in trained if model in (point.system, point.key)]
    if not models:
        names = [found for point in trained for found in (point.system, point.key)]
        raise place.at("model").wrong(f"there is no trained system '{model}'{suggestion(model, dict.fromkeys(names))}")
    own = place.at("generate").options(system.get("generate", {}), TAKEN["generate"])
    grid = place.at("grid").grid(system.get("grid", {}), TAKEN["generate"], own)
    return [
        Point(
            name,
            _setting(point, of=found.setting),
            found.train,
            {**generate, **own, **point},
            found.seeds,
            model=found.key,
        )
        for found in models
        for point in grid
    ]


def _setting(point: Options, of: str = "") -> str:
    return ",".join([*([of] if of else []), *(f"{option}={as_text(value)}" for option, value in point.items())])


def _check_names(top: Location, spec: Spec) -> None:
    """No two runs share a folder, also on file systems that ignore case, and no name is too long for one."""
    seen: Dict[str, str] = {}
    runs = [(point, f"{point.key}-s{seed}") for point in spec.points for seed in point.seeds]
    for point, name in runs:
        place = top.at("systems").at(point.system)
        if name.lower() in seen:
            raise place.wrong(f"the run {name} appears twice (the other is {seen[name.lower()]})")
        if len(name) > LONGEST:
            raise place.wrong(f"{name[:40]}... is too long for the name of a folder")
        seen[name.lower()] = f"systems.{point.system}"


def _check_after(top: Location, spec: Spec) -> None:
    points = {point.key: point for point in spec.points}
    for point in spec.points:
        place = top.at("systems").at(point.system).at("after")
        chain = [point.key]
        while points[chain[-1]].after:
            last = points[chain[-1]]
            after, _ = spec.start(last, last.seeds[0])
            if after not in points:
                grid = [key for key, other in points.items() if other.system == after]
                hint = f"it has a grid: name one of {', '.join(grid)}" if grid else suggestion(after, points)
                raise place.wrong(f"there is no run '{after}'{': ' if grid else ''}{hint}")
            missing = [seed for seed in last.seeds if spec.start(last, seed)[1] not in points[after].seeds]
            if missing:
                raise place.wrong(f"there is no run '{after}-s{missing[0]}': name one with its seed, or add the seed")
            chain.append(after)
            if after in chain[:-1]:
                raise place.wrong(f"the systems start from one another: {' after '.join(chain)}")
