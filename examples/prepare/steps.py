"""Steps whose results are kept: an interrupted preparation continues where it stopped."""

import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

from fairseq_milk.console.durations import duration
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.files import digest, read_json, write_atomically
from fairseq_milk.console.locks import try_lock
from fairseq_milk.console.progress import Line


class Steps:
    """Runs steps in order.  A step is repeated if its settings, or an earlier step, have changed.

    A stamp is written when a step has finished; without a stamp it was interrupted.
    """

    def __init__(self, folder: Path, line: Line) -> None:
        self.folder, self.line = folder, line
        self.past = ""

    def __call__(self, name: str, settings: Any, outputs: Sequence[Path], make: Callable[[], None]) -> None:
        self.past = digest([self.past, name, settings])
        stamp = self.folder / f"{name.replace(' ', '-')}.json"
        if read_json(stamp) == self.past and all(path.exists() for path in outputs):
            self.line.say(f"{name}: kept")
            return
        for path in (stamp.parent, *(output.parent for output in outputs)):
            path.mkdir(parents=True, exist_ok=True)
        write_atomically(stamp, '"unfinished"\n')
        started = time.monotonic()
        make()
        write_atomically(stamp, f'"{self.past}"\n')
        self.line.say(f"{name}: done in {duration(time.monotonic() - started)}")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock the folder during the block; UserError if another process holds the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = try_lock(folder / ".lock")
    if lock is None:
        raise UserError(f"{folder} is in use by another process: wait for it, or end it")
    with lock:
        yield


class Progress:
    """Shows the progress of a step in bytes.  Updated once per `every` bytes, because lines can be short."""

    every = 1 << 20

    def __init__(self, line: Line, what: str, total: int) -> None:
        self.line, self.what, self.total = line, what, total
        self.done = self.before = self.shown = 0
        self.started = time.monotonic()

    def start_at(self, done: int) -> None:
        """Count bytes that were there before as done."""
        self.done = self.before = self.shown = done

    def add(self, amount: int) -> None:
        self.done += amount
        if self.done - self.shown >= self.every:
            self.shown = self.done
            self._show(time.monotonic() - self.started)

    def _show(self, seconds: float) -> None:
        parts = [f"{self.what}: {self.done / 1e6:.0f} MB"]
        if self.total:
            left = seconds * (self.total - self.done) / (self.done - self.before)
            parts = [f"{parts[0]} of {self.total / 1e6:.0f}", f"{duration(left)} left"]
        self.line.show(parts)
