"""Trains and decodes systems with the stock commands, several at once, and keeps what is complete.

    OUT/data-<hash>/        the corpus
    OUT/<system>-s<seed>/   one run: its settings and commands, checkpoints, logs and results, and done.json

A run is complete if its done.json has the settings that are asked for; nothing else is taken for complete.  A run
that is not goes on from its last checkpoint if its settings are the same, else it begins anew.
"""

import fcntl
import json
import shlex
import shutil
import time
import zipfile
from pathlib import Path
from typing import IO, Any, Dict, List, NamedTuple, Optional, Sequence

from examples.verb_final import recipe
from examples.verb_final.commands import RunError, check, command, read_json, start, stop, undisturbed, write_atomically
from examples.verb_final.progress import Line, LogReader, duration

PLUGIN = Path(__file__).resolve().parents[2] / "fairseq_milk"
START, DECODING = 10.0, 15.0  # seconds, guesses for the time that is left


class Run(NamedTuple):
    """A system with a seed, trained on some data."""

    system: recipe.System
    seed: int
    scale: recipe.Scale
    data: Path
    out: Path

    @property
    def name(self) -> str:
        return f"{self.system.key}-s{self.seed}"

    @property
    def folder(self) -> Path:
        return self.out / self.name

    @property
    def results(self) -> Path:
        """The folder in which fairseq-generate leaves generate-test.txt and .jsonl."""
        return self.folder / "results"

    @property
    def updates(self) -> int:
        return int(recipe.train_options(self.system, self.scale)["--max-update"] or 0)

    @property
    def before(self) -> Optional["Run"]:
        """The run whose model it starts from."""
        return self._replace(system=recipe.systems()[self.system.after]) if self.system.after else None

    def settings(self) -> Dict[str, Any]:
        """What the outcome depends on, without the place where it is kept."""
        return {
            **({"after": self.before.settings()} if self.before else {}),
            "train": recipe.arguments(recipe.train_options(self.system, self.scale)),
            "generate": recipe.arguments(recipe.GENERATE),
            "checkpoint": recipe.CHECKPOINT,
            "seed": self.seed,
            "data": self.data.name,
        }

    def commands(self) -> List[List[str]]:
        plugin, checkpoints = ["--user-dir", str(PLUGIN)], self.folder / "checkpoints"
        train = [command("fairseq-train"), str(self.data / "bin"), *plugin, "--save-dir", str(checkpoints)]
        train += ["--seed", str(self.seed), *self.settings()["train"]]
        if self.before:
            train += ["--finetune-from-model", str(self.before.folder / "checkpoints" / recipe.CHECKPOINT)]
        generate = [command("fairseq-generate"), str(self.data / "bin"), *plugin]
        generate += ["--path", str(checkpoints / recipe.CHECKPOINT), "--results-path", str(self.results)]
        return [train, generate + self.settings()["generate"]]

    def is_complete(self) -> bool:
        done = read_json(self.folder / "done.json")
        return isinstance(done, dict) and done.get("settings") == self.settings()


class Job:
    """A run under way: its training, then its decoding.  A lock, which the commands inherit, keeps others away."""

    def __init__(self, run: Run, single_thread: bool) -> None:
        self.run, self.single_thread = run, single_thread
        self.commands = run.commands()
        self.lock = self._acquire()
        self._clear()
        write_atomically(run.folder / "settings.json", json.dumps(run.settings(), indent=1) + "\n")
        lines = [" ".join(map(shlex.quote, words)) + "\n" for words in self.commands]
        write_atomically(run.folder / "commands.sh", "".join(lines))
        self.reader = LogReader(run.folder / "train.log")
        self.started = time.monotonic()
        self._begin(0)

    def _acquire(self) -> IO[str]:
        self.run.folder.mkdir(parents=True, exist_ok=True)
        lock = open(self.run.folder / ".lock", "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise RunError(f"{self.run.folder} is in use by another process: wait for it, or end it") from None
        return lock

    def _clear(self) -> None:
        """Keep the checkpoints and the training log of a run of the same settings, and nothing else."""
        folder = self.run.folder
        same = read_json(folder / "settings.json") == self.run.settings()
        for name in ["done.json", "generate.log"] + ([] if same else ["train.log"]):
            if (folder / name).exists():
                (folder / name).unlink()
        for path in [self.run.results] + ([] if same else [folder / "checkpoints"]):
            shutil.rmtree(path, ignore_errors=True)
        mend_checkpoints(folder / "checkpoints")

    def _begin(self, stage: int) -> None:
        self.stage = stage
        self.log = self.run.folder / ("train.log", "generate.log")[stage]
        self.process = start(self.commands[stage], self.log, self.single_thread, keep_open=[self.lock.fileno()])

    def poll(self) -> bool:
        """True when the run is complete; RunError if a command failed."""
        code = self.process.poll()
        if code is None:
            return False
        check(self.commands[self.stage], code, self.log, self.run.name)
        if self.stage == 0:
            self._begin(1)
            return False
        done = {"settings": self.run.settings(), "seconds": round(time.monotonic() - self.started, 1)}
        write_atomically(self.run.folder / "done.json", json.dumps(done, indent=1) + "\n")
        return True

    def close(self) -> None:
        stop(self.process)
        self.lock.close()

    def describe(self) -> str:
        if self.stage == 1:
            return f"{self.run.name} decoding"
        status = self.reader.poll()
        if status is None:
            return f"{self.run.name} starting"
        return f"{self.run.name} {status.update}/{self.run.updates} loss {status.loss:.2f} DAL {status.dal:.1f}"

    def seconds_left(self, per_update: float) -> float:
        if self.stage == 1:
            return DECODING / 2
        status = self.reader.last
        trained = 0 if status is None else status.update
        return (self.run.updates - trained) * per_update + DECODING + (START if status is None else 0.0)


def mend_checkpoints(folder: Path) -> None:
    """fairseq copies its checkpoints: a copy that was cut off is removed, and the last one made again."""
    sound = {path.name: _is_sound(path) for path in folder.glob("*.pt")} if folder.is_dir() else {}
    for name in [name for name, whole in sound.items() if not whole]:
        (folder / name).unlink()
    numbered = [name for name, whole in sound.items() if whole and name.count("_") == 2]  # checkpoint_EPOCH_UPDATE.pt
    if sound.get("checkpoint_last.pt") is False and numbered:
        newest = max(numbered, key=lambda name: int(name[: -len(".pt")].split("_")[2]))
        shutil.copyfile(folder / newest, folder / "checkpoint_last.pt")


def _is_sound(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


class Clock:
    """Estimates the time left from the speed of the trainings so far."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.finished: List[float] = []  # seconds an update

    def note(self, job: Job) -> None:
        speed = job.reader.seconds_per_update()
        if speed is not None:
            self.finished.append(speed)

    def seconds_left(self, active: Sequence[Job], waiting: Sequence[Run]) -> Optional[float]:
        """None as long as nothing is known."""
        speeds = [job.reader.seconds_per_update() for job in active]
        known = [speed for speed in speeds if speed is not None] or self.finished[-self.jobs :]
        if not known:
            return None
        mean = sum(known) / len(known)
        running = [job.seconds_left(mean if speed is None else speed) for job, speed in zip(active, speeds)]
        queued = sum(run.updates * mean + START + DECODING for run in waiting)
        return max(max(running), (sum(running) + queued) / self.jobs)


def run_all(runs: Sequence[Run], jobs: int, line: Line, poll: float = 0.2) -> List[Run]:
    """Complete all runs and those that they start from, `jobs` at once.  What failed is returned after all is done."""
    runs = with_predecessors(runs)
    waiting = [run for run in runs if not run.is_complete()]
    if len(waiting) < len(runs):
        line.say(f"{len(runs) - len(waiting)} of {len(runs)} systems were trained and decoded before")
    failed: List[Run] = []
    active: List[Job] = []
    clock = Clock(jobs)
    try:
        while waiting or active:
            with undisturbed():
                while len(active) < jobs and any(map(is_ready, waiting)):
                    run = next(filter(is_ready, waiting))
                    waiting.remove(run)
                    active.append(Job(run, single_thread=jobs > 1))
                for job in [job for job in active if _ended(job, failed, line)]:
                    active.remove(job)
                    clock.note(job)
            if not active and not any(map(is_ready, waiting)):
                return failed + waiting  # what they start from has failed
            if active:
                left = clock.seconds_left(active, waiting)
                done = f"{len(runs) - len(waiting) - len(active)} of {len(runs)} done"
                left_shown = "" if left is None else f", {duration(left)} left"
                line.show([*(job.describe() for job in active), done + left_shown])
                time.sleep(poll)
    finally:
        line.clear()
        with undisturbed():
            for job in active:
                job.close()
    return failed


def is_ready(run: Run) -> bool:
    return run.before is None or run.before.is_complete()


def with_predecessors(runs: Sequence[Run]) -> List[Run]:
    """The runs, each after the one that it starts from, once."""
    ordered: Dict[str, Run] = {}
    for run in runs:
        chain = [run]
        while chain[-1].before is not None:
            chain.append(chain[-1].before)
        ordered.update({member.name: member for member in reversed(chain) if member.name not in ordered})
    return list(ordered.values())


def _ended(job: Job, failed: List[Run], line: Line) -> bool:
    """Whether the job has ended, well or not."""
    try:
        if not job.poll():
            return False
        line.say(f"{job.run.name}: trained and decoded in {duration(time.monotonic() - job.started)}")
    except RunError as error:
        failed.append(job.run)
        line.say(str(error))
    job.close()
    return True
