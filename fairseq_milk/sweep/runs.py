"""A run is a system at one setting with one seed: its settings, its commands, and whether it is complete.

    OUT/<run>/settings.json     what it depends on       commands.sh    its commands
              checkpoints/      train.log                trained.json   written when the training is complete
              results/          generate.log             done.json      written when the decoding is complete

A training is complete if trained.json has the settings of the run, and a run is complete if done.json has them.  The
commands of `shell_scripts` write a copy of settings.json there; a `Job` adds the duration and the version.
"""

import hashlib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..console.errors import UserError
from ..console.files import digest, read_json
from ..console.processes import command
from .spec import Spec, words
from .validation import Value

PLUGIN = Path(__file__).resolve().parents[1]
DECODING = ("generate", "checkpoint", "test")  # the settings that a training does not depend on


@dataclass(frozen=True)
class Run:
    """train, generate: arguments of the commands, without paths of data, checkpoints and results.

    data: the binarised data.  data_id, test_id: digests of the data sets of the training and of the decoding.
    before: the run whose model it starts from or, if `decodes_only`, decodes.
    references: the published text of the test set for BLEU, instead of the binarised references.
    cwd: the working directory of the commands; None: the current one.
    """

    system: str
    setting: str
    seed: int
    train: Sequence[str]
    generate: Sequence[str]
    checkpoint: str
    data: Path
    data_id: str
    out: Path
    test_id: str = ""
    before: Optional["Run"] = None
    decodes_only: bool = False
    references: Optional[Path] = None
    cwd: Optional[Path] = None

    @property
    def key(self) -> str:
        return f"{self.system}-{self.setting}" if self.setting else self.system

    @property
    def name(self) -> str:
        return f"{self.key}-s{self.seed}"

    @property
    def folder(self) -> Path:
        return self.out / self.name

    @property
    def trained(self) -> "Run":
        """The run that trains its model."""
        return self.before if self.decodes_only and self.before else self

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def model(self) -> Path:
        """The checkpoint that is decoded, and that other runs start from."""
        return self.trained.checkpoints / self.checkpoint

    @property
    def results(self) -> Path:
        """The folder to which fairseq-generate writes generate-test.txt, .jsonl and .json."""
        return self.folder / "results"

    @property
    def summary(self) -> Path:
        return self.results / f"generate-{self.argument('--gen-subset') or 'test'}.json"

    def argument(self, option: str) -> str:
        """The value of an option of the commands, the last if it is repeated; empty if it is not given."""
        arguments = [*self.train, *self.generate]
        found = [value for name, value in zip(arguments, arguments[1:]) if name == option]
        return found[-1] if found else ""

    def settings(self) -> Dict[str, Any]:
        """Everything that the result depends on, without paths."""
        test = {"test": self.test_id} if self.test_id else {}
        return {**self.training(), "generate": list(self.generate), "checkpoint": self.checkpoint, **test}

    def training(self) -> Dict[str, Any]:
        """Everything that the trained model depends on, without paths."""
        if self.decodes_only:
            return self.trained.training()
        before = {"after": {**self.before.training(), "checkpoint": self.before.checkpoint}} if self.before else {}
        return {**before, "train": list(self.train), "seed": self.seed, "data": self.data_id}

    def commands(self) -> List[List[str]]:
        """The commands of the training and of the decoding."""
        plugin = ["--user-dir", str(PLUGIN)]
        generate = [command("fairseq-generate"), str(self.data), *plugin]
        generate += ["--path", str(self.model), "--results-path", str(self.results), *self.generate]
        if self.decodes_only:
            return [self.trained.commands()[0], generate]
        train = [command("fairseq-train"), str(self.data), *plugin, "--save-dir", str(self.checkpoints)]
        train += ["--seed", str(self.seed), *self.train]
        if self.before:
            train += ["--finetune-from-model", str(self.before.model)]
        return [train, generate]

    def is_complete(self) -> bool:
        return _recorded(self.folder / "done.json") == self.settings() and self.summary.is_file()

    def is_trained(self) -> bool:
        if self.decodes_only:
            return True  # there is nothing to train
        return training_part(_recorded(self.folder / "trained.json")) == self.training() and self.model.is_file()

    def other_training(self) -> str:
        """How the model in the folder was trained differently; empty if it was not, or there is none."""
        if not any(self.checkpoints.glob("*.pt")):
            return ""
        found, wanted = training_part(read_json(self.folder / "settings.json")), self.training()
        if not found:
            return "its settings are not recorded"
        changed = [key for key in dict.fromkeys([*found, *wanted]) if found.get(key) != wanted.get(key)]
        return f"{', '.join(changed)} changed" if changed else ""


def _recorded(path: Path) -> Any:
    record = read_json(path)
    return record.get("settings", record) if isinstance(record, dict) else None


def training_part(settings: Any) -> Dict[str, Any]:
    """The part of `Run.settings` that belongs to `Run.training`."""
    return {k: v for k, v in settings.items() if k not in DECODING} if isinstance(settings, dict) else {}


def make_runs(spec: Spec, out: Path) -> List[Run]:
    """All runs of the file in its order, seed by seed."""
    files = _file_digests(spec.data)
    points = {point.key: point for point in spec.points}
    made: Dict[str, Run] = {}

    def run(key: str, seed: int) -> Run:
        point = points[key]
        new = Run(
            system=point.system,
            setting=point.setting,
            seed=seed,
            train=words(point.train),
            generate=words(point.generate),
            checkpoint=spec.checkpoint,
            data=spec.data,
            data_id=_data_id(files, point.train.get("train-subset", "train"), point.train.get("valid-subset", "valid")),
            test_id=_data_id(files, point.generate.get("gen-subset", "test")),
            out=out,
            before=run(*spec.start(point, seed)) if point.after or point.model else None,
            decodes_only=bool(point.model),
            references=spec.references.get(str(point.generate.get("gen-subset", "test"))),
            cwd=spec.path.parent,
        )
        return made.setdefault(new.name, new)

    return [run(key, seed) for seed in spec.seeds for key, point in points.items() if seed in point.seeds]


def _file_digests(data: Path) -> Dict[str, str]:
    """The SHA-256 of each dictionary and binary in a data folder."""
    files = sorted(path for pattern in ("dict.*.txt", "*.bin", "*.idx") for path in data.glob(pattern))
    if not files:
        raise UserError(f"there is no data set in {data}: run fairseq-preprocess --destdir {data} first")
    return {path.name: _sha256(path) for path in files}


def _data_id(files: Mapping[str, str], *subsets: Value) -> str:
    """Digest of the dictionaries and of data sets.  'train' includes train1, as in fairseq; 'a,b' names two."""
    starts = ("dict.", *(name for subset in subsets for name in str(subset).split(",")))
    return digest({name: found for name, found in files.items() if name.startswith(starts)})


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(2**20), b""):
            found.update(block)
    return found.hexdigest()


def choose(runs: Sequence[Run], patterns: Sequence[str]) -> List[Run]:
    """The runs whose name, with or without seed and setting, matches a shell pattern; all runs without patterns."""
    chosen = [
        run
        for run in runs
        if not patterns or any(fnmatchcase(name, p) for name in (run.name, run.key, run.system) for p in patterns)
    ]
    if not chosen:
        raise UserError(f"no run is called {' or '.join(patterns)}; there are {', '.join(run.name for run in runs)}")
    return chosen


def with_predecessors(runs: Sequence[Run]) -> List[Run]:
    """The runs and those that they depend on, each once and after those that it depends on."""
    ordered: Dict[str, Run] = {}
    for run in runs:
        chain = [run]
        while chain[-1].before is not None:
            chain.append(chain[-1].before)
        ordered.update({member.name: member for member in reversed(chain) if member.name not in ordered})
    return list(ordered.values())


def missing_runs(runs: Sequence[Run]) -> List[Run]:
    """Those of `with_predecessors` that are not complete."""
    return [run for run in with_predecessors(runs) if not run.is_complete()]
