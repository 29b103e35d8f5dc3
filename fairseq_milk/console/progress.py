"""Status lines that are updated in place on a terminal, and written every ten seconds to a log.

Not tqdm: a status is a sentence about one of several jobs, which has no count to draw a bar for.
"""

import shutil
import sys
import time
from typing import List, Optional, TextIO

PERIOD = {True: 0.5, False: 10.0}  # seconds between updates, on a terminal and elsewhere


class Line:
    """On a terminal one line per part, overwritten by the next update; elsewhere one line for all parts."""

    def __init__(self, stream: Optional[TextIO] = None) -> None:
        self.stream = sys.stdout if stream is None else stream
        self.terminal = self.stream.isatty()
        self.shown_at = -1e9
        self.shown = 0  # number of lines on the terminal

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
        """Print a line that is not overwritten."""
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
