"""Finding, starting and ending other commands."""

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable, Optional, Sequence

from .errors import RunError

Process = subprocess.Popen  # of bytes
PR_SET_PDEATHSIG = 1  # of Linux' prctl


def command(name: str) -> str:
    """The command beside this Python, or on the PATH."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if found is None:
        raise RunError(f"there is no command {name}: run scripts/setup.sh first")
    return found


def shell_line(words: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, words))


def start(
    words: Sequence[str],
    log: Path,
    threads: Optional[int],
    keep_open: Sequence[int] = (),
    folder: Optional[Path] = None,
) -> "Process[bytes]":
    """Start a command in a group of its own: Ctrl-C reaches us alone, and we end it; if we are killed, so is it.

    threads: for each of several that run at once, whose threads would fight for the cores otherwise; None: its default.
    folder: where it runs, if not here.
    """
    limits = {} if threads is None else {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with open(log, "ab") as file:
        return Process(
            words,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONWARNINGS": "ignore", **limits},
            cwd=folder,
            start_new_session=True,
            pass_fds=keep_open,
            preexec_fn=_dies_with_us(),
        )


def _dies_with_us() -> Optional[Callable[[], None]]:
    """For the new process: be killed when its parent ends in whatever way.  Only Linux has this."""
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)

    return ask


def stop(process: "Process[bytes]") -> None:
    """End a command and what it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, sign)
            process.wait(timeout=5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def check(words: Sequence[str], code: int, log: Path, name: str = "") -> None:
    """RunError with the end of the log if the exit code is not 0."""
    if code == 0:
        return
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
    shown = "\n".join("    " + line[:300] for line in lines)
    end = f"exit code {code}" if code > 0 else f"signal {-code}"
    which = f"{name}: " if name else ""
    raise RunError(f"{shown}\n{which}{Path(words[0]).name} failed with {end}; the end of its log is above ({log})")
