"""Executes a run: locks its folder, reuses earlier attempts, runs its two commands and records their time."""

import json
import math
import os
import re
import shlex
import shutil
import time
import zipfile
from pathlib import Path
from typing import IO, Any, List, Optional

from ..console.errors import RunError
from ..console.files import read_json, write_atomically
from ..console.locks import try_lock
from ..console.processes import check, start, stop
from ..console.version_info import source_version
from .runs import Run, training_part
from .training_log import LogReader, Status

LOGS = ("train.log", "generate.log")
NUMBERED = re.compile(r"checkpoint_\d+_(\d+)\.pt")  # checkpoint_EPOCH_UPDATE.pt


def lock(run: Run) -> Optional[IO[str]]:
    """The lock of the run's folder; None if another process holds it."""
    run.folder.mkdir(parents=True, exist_ok=True)
    return try_lock(run.folder / ".lock")


class Job:
    """Runs the training, unless it is complete, then the decoding.  held: the lock, which the commands inherit."""

    def __init__(self, run: Run, held: IO[str], threads: Optional[int] = None) -> None:
        self.run, self.held, self.threads = run, held, threads
        self.commands = run.commands()
        clear(run)
        folder = [["cd", str(run.cwd)]] if run.cwd else []
        self._write("settings.json", run.settings())
        lines = [shlex.join(words) + "\n" for words in [*folder, *self.commands]]
        write_atomically(run.folder / "commands.sh", "".join(lines))
        self.reader = LogReader(run.folder / "train.log")
        self.started = time.time()
        self._begin(1 if run.is_trained() else 0)

    def poll(self) -> bool:
        """True when the run is complete; RunError if a command failed."""
        code = self.process.poll()
        if code is None:
            return False
        check(self.commands[self.stage], code, self.log, self.run.name)
        seconds = round(self.spent + time.time() - self.since, 1)
        wanted = (self.run.model, self.run.summary)[self.stage]
        if not wanted.is_file():
            raise RunError(f"{self.run.name}: {Path(self.commands[self.stage][0]).name} has not written {wanted}")
        if self.stage == 0:
            self._write("trained.json", _record(self.run.training(), seconds))
            self._begin(1)
            return False
        self._write("done.json", _record(self.run.settings(), seconds))
        return True

    def close(self) -> None:
        stop(self.process)
        self.held.close()

    def describe(self) -> str:
        if self.stage == 1:
            return f"{self.run.name} decoding"
        status = self.reader.poll()
        if status is None:
            first = self.run.argument("--log-interval") or "100"
            began = f"training, figures from update {first} on"
            return f"{self.run.name} {began if self.reader.began else 'starting'}"
        updates, epochs = limits(self.run)
        where = f"update {status.update}/{updates:.0f}" if updates else f"update {status.update}"
        where += f" epoch {status.epoch:.1f}/{epochs:.0f}" if epochs else ""
        dal = "" if math.isnan(status.dal) else f" DAL {status.dal:.1f}"
        return f"{self.run.name} {where} loss {status.loss:.2f}{dal}"

    def training_seconds(self) -> Optional[float]:
        """An estimate of the duration of the whole training from its speed so far; None if there is none yet."""
        if self.reader.first is None or self.reader.last is None:
            return None
        (first, began), (last, now) = self.reader.first, self.reader.last
        share = progress(self.run, last) - progress(self.run, first)
        return (now - began) / share if share > 0 else None

    def share_left(self) -> float:
        """The share of the training that is left to do."""
        if self.stage == 1:
            return 0.0
        return 1.0 - progress(self.run, self.reader.last[0]) if self.reader.last else 1.0

    def _begin(self, stage: int) -> None:
        self.stage = stage
        self.log = self.run.folder / LOGS[stage]
        self.since = time.time()
        self.spent = 0.0 if stage == 1 else spent_before(self.run)
        if stage == 0:
            self._write("clock.json", {"spent": self.spent, "since": self.since})
        keep_open = [self.held.fileno()]
        self.process = start(self.commands[stage], self.log, self.threads, keep_open, self.run.cwd)

    def _write(self, name: str, content: Any) -> None:
        write_atomically(self.run.folder / name, json.dumps(content, indent=1) + "\n")


def _record(settings: Any, seconds: float) -> Any:
    return {"settings": settings, "seconds": seconds, "commit": source_version()}


def spent_before(run: Run) -> float:
    """Seconds that earlier attempts at the training took, each until the last change of its log."""
    clock, log = read_json(run.folder / "clock.json"), run.folder / "train.log"
    try:
        last = min(log.stat().st_mtime, time.time())  # the clock of a file server may be ahead of ours
        spent = float(clock["spent"]) + max(0.0, last - float(clock["since"]))
    except (OSError, LookupError, ArithmeticError, TypeError, ValueError):  # missing, or written by another program
        return 0.0
    return spent if 0 <= spent < math.inf else 0.0


def clear(run: Run) -> None:
    """Remove the results of earlier attempts; checkpoints are kept if the settings of the training are the same.

    The markers of completion are removed first, so that after an interruption no run looks more complete than it is.
    """
    folder = run.folder
    same = training_part(read_json(folder / "settings.json")) == run.training()
    stale = ["done.json", "generate.log"]
    if not (same and run.is_trained()):  # also if its model was removed
        stale.append("trained.json")
    if not same:
        stale += ["settings.json", "clock.json", "train.log"]
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    discarded = folder / "discarded"
    for path in [run.results] + ([] if same else [run.checkpoints]):
        shutil.rmtree(discarded, ignore_errors=True)
        if path.exists():
            os.rename(path, discarded)
    shutil.rmtree(discarded, ignore_errors=True)
    mend_checkpoints(run.checkpoints)


def mend_checkpoints(folder: Path) -> None:
    """Remove truncated checkpoints, and replace a truncated checkpoint_last.pt by the newest numbered one.

    Only --write-checkpoints-asynchronously can truncate a checkpoint: the plugin leaves these writes to fairseq.
    """
    truncated = [path for path in folder.glob("*.pt") if not _is_sound(path)]
    for path in truncated:
        path.unlink()
    by_update = {int(found[1]): path for path in folder.glob("*.pt") if (found := NUMBERED.fullmatch(path.name))}
    last = folder / "checkpoint_last.pt"
    if last in truncated and by_update:
        shutil.copyfile(by_update[max(by_update)], last)


def _is_sound(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except Exception:  # zipfile raises many types for damaged files
        return False


def limits(run: Run) -> List[float]:
    """--max-update and --max-epoch; 0 if not given."""
    return [float(run.argument(option) or 0) for option in ("--max-update", "--max-epoch")]


def progress(run: Run, status: Status) -> float:
    """The share of the training that is done, 0 if it has no limit."""
    shares = [done / limit for done, limit in zip((status.update, status.epoch), limits(run)) if limit > 0]
    return min(1.0, max(shares, default=0.0))
