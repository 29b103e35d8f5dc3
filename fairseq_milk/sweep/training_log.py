"""Reads the statistics from the log of a training."""

import json
import math
import time
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Tuple

BEGAN = "Start iterating over samples"  # in fairseq's log before the first update


class Status(NamedTuple):
    """A line of statistics: updates, epochs (with a fraction), loss and DAL of the training schedule."""

    update: int
    epoch: float
    loss: float
    dal: float


class LogReader:
    """Reads what is appended to a log of `fairseq-train --log-format json` from now on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = path.stat().st_size if path.exists() else 0
        self.first: Optional[Tuple[Status, float]] = None  # with the time at which it was read
        self.last: Optional[Tuple[Status, float]] = None
        self.began = False  # the updates have begun; fairseq logs statistics every --log-interval updates

    def poll(self) -> Optional[Status]:
        """The latest status, None if there is none yet."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                new = file.read()
        except FileNotFoundError:
            new = b""
        complete = new.rfind(b"\n") + 1
        self.offset += complete
        for line in new[:complete].decode("utf-8", errors="replace").splitlines():
            self.began = self.began or BEGAN in line
            status = parse(line)
            if status is not None:
                self.last = status, time.monotonic()
                self.first = self.first or self.last
        return self.last[0] if self.last else None


def parse(line: str) -> Optional[Status]:
    """The status of a line `... | train_inner | {...}`, None for other lines."""
    figures = statistics(line, "train_inner") or {}
    try:
        update, epoch = int(figures["num_updates"]), float(figures["update"])
        loss, dal = float(figures["loss"]), float(figures.get("dal", "nan"))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return Status(update, epoch, loss, dal) if math.isfinite(epoch) else None


def statistics(line: str, stage: str) -> Optional[Dict[str, Any]]:
    """The figures of a line `... | STAGE | {...}` of `fairseq-train --log-format json`, None for other lines."""
    _, found, text = line.partition(f"| {stage} | ")
    try:
        figures = json.loads(text) if found else None
    except (RecursionError, ValueError):
        return None
    return figures if isinstance(figures, dict) else None
