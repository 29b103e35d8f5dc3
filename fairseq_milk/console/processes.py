"""Finding, starting and stopping other commands, and deferring signals until one has been started."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence

from .errors import RunError

PR_SET_PDEATHSIG = 1  # from Linux's <sys/prctl.h>


def command(name: str) -> str:
    """The path of a command, from the folder of this Python or from the PATH."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if found is None:
        raise RunError(f"there is no command {name}: run scripts/setup.sh first")
    return found


def start(
    words: Sequence[str],
    log: Path,
    threads: Optional[int],
    keep_open: Sequence[int] = (),
    folder: Optional[Path] = None,
) -> "subprocess.Popen[bytes]":
    """Start a command in its own process group, so that Ctrl-C does not reach it; it is killed if this process ends.

    log: its output is appended here.  threads: the number of threads of the command, for several that run at once;
    None: its default.  keep_open: file descriptors that it inherits.  folder: its working directory.
    """
    limits = {} if threads is None else {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with open(log, "ab") as file:
        return subprocess.Popen(
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
    """A function that makes the new process be killed when its parent ends; None where the system is not Linux."""
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # the parent has ended already
            os._exit(1)

    return ask


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Ctrl-C and SIGTERM take effect after the block, so that a command started in it is always registered."""
    pending: List[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, frame: pending.append(number)) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before):
            signal.signal(number, handler)
    if pending:
        raise KeyboardInterrupt


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Terminate a command and the processes that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, sign)
            process.wait(timeout=5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def check(words: Sequence[str], code: int, log: Path, name: str = "") -> None:
    """Raise a RunError with the end of the log if the exit code is not 0."""
    if code == 0:
        return
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
    shown = "\n".join("    " + line[:300] for line in lines)
    end = f"exit code {code}" if code > 0 else f"signal {-code}"
    which = f"{name}: " if name else ""
    raise RunError(f"{shown}\n{which}{Path(words[0]).name} failed with {end}; the end of its log is above ({log})")
