"""A command on a pseudo-terminal, with the contents of its screen."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from typing import Any, Callable, Iterator, List, Sequence

import pyte

PATIENCE = 120.0  # seconds; the machine may be busy


class Terminal:
    """A pseudo-terminal, the process that runs on it, and an emulation of the screen."""

    def __init__(self, command: Sequence[str], columns: int = 60, rows: int = 14, **options: Any) -> None:
        self.controller, self.terminal = pty.openpty()
        self._size(columns, rows)
        self.before = self.settings()
        self.screen = pyte.Screen(columns, rows)
        setattr(self.screen, "write_process_input", self.type)  # noqa: B010  (answers to questions of the program)
        self.stream = pyte.ByteStream(self.screen)
        self.process = subprocess.Popen(
            command, stdin=self.terminal, stdout=self.terminal, stderr=subprocess.PIPE, preexec_fn=self._own, **options
        )

    def _own(self) -> None:
        """In the child: a session with this terminal, and signals as from a shell."""
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def settings(self) -> List[Any]:
        return termios.tcgetattr(self.terminal)

    def type(self, keys: str) -> None:
        os.write(self.controller, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        self._size(columns, rows)
        self.screen.resize(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    @property
    def lines(self) -> List[str]:
        """What stands on the screen, without empty lines."""
        return [line.rstrip() for line in self.screen.display if line.strip()]

    def until(self, condition: Callable[[List[str]], bool]) -> List[str]:
        """The lines once the condition holds."""
        end = time.monotonic() + PATIENCE
        while not condition(self.lines):
            assert time.monotonic() < end, "\n".join(["it never came; the screen:", *self.lines])
            self._take(0.1)
        return self.lines

    def wait(self) -> int:
        """The exit code."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, "it does not end"
            self._take(0.1)
        self._take(0.1)
        return int(self.process.returncode)

    def _take(self, seconds: float) -> None:
        if select.select([self.controller], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.stream.feed(os.read(self.controller, 65536))


@contextlib.contextmanager
def terminal(command: Sequence[str], **options: Any) -> Iterator[Terminal]:
    opened = Terminal(command, **options)
    try:
        yield opened
    finally:
        opened.process.kill()
        opened.process.communicate()
        os.close(opened.controller)
        os.close(opened.terminal)
