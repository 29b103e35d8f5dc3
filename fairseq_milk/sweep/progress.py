"""What a training says of itself in its log, and lines on a screen that are kept up to date."""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, TextIO, Tuple

PERIOD = {True: 0.5, False: 10.0}  # seconds between two lines, on a terminal and elsewhere


class Status(NamedTuple):
    """The last line of statistics: updates, epochs (with a fraction), loss and DAL of the training schedule."""

    update: int
    epoch: float
    loss: float
    dal: float


class LogReader:
    """Follows a log of `fairseq-train --log-format json` as it grows from now on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = path.stat().st_size if path.exists() else 0
        self.first: Optional[Tuple[Status, float]] = None  # and when it was seen
        self.last: Optional[Tuple[Status, float]] = None

    def poll(self) -> Optional[Status]:
        """The last status there is."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                new = file.read()
        except FileNotFoundError:
            new = b""
        complete = new.rfind(b"\n") + 1
        self.offset += complete
        for line in new[:complete].decode("utf-8", errors="replace").splitlines():
            status = parse(line)
            if status is not None:
                self.last = status, time.monotonic()
                self.first = self.first or self.last
        return self.last[0] if self.last else None


def parse(line: str) -> Optional[Status]:
    """The figures of a line `... | train_inner | {...}`, None for other lines."""
    _, found, text = line.partition("| train_inner | ")
    if not found:
        return None
    try:
        figures: Dict[str, Any] = json.loads(text)
        update, epoch = int(figures["num_updates"]), float(figures["update"])
        return Status(update, epoch, float(figures["loss"]), float(figures.get("dal", "nan")))
    except (ValueError, KeyError):
        return None


class Line:
    """On a terminal a line for each part, written over the last ones; elsewhere one for all every ten seconds."""

    def __init__(self, stream: Optional[TextIO] = None) -> None:
        self.stream = sys.stdout if stream is None else stream
        self.terminal = self.stream.isatty()
        self.shown_at = -1e9
        self.shown = 0  # lines on the terminal

    def show(self, parts: List[str]) -> None:
        now = time.monotonic()
        if now - self.shown_at < PERIOD[self.terminal]:
            return
        self.shown_at = now
        if self.terminal:
            self.clear()
            self.stream.write("\n".join(cut(part, shutil.get_terminal_size().columns - 1) for part in parts))
            self.shown = len(parts)
        else:
            self.stream.write(" | ".join(parts) + "\n")
        self.stream.flush()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self.stream.write(text + "\n")
        self.stream.flush()

    def clear(self) -> None:
        if self.shown:
            up = f"\x1b[{self.shown - 1}A" if self.shown > 1 else ""
            self.stream.write(f"\r{up}\x1b[J")
            self.shown = 0


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def duration(seconds: float) -> str:
    """45 s, 3 min 20 s, 2 h 5 min."""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
