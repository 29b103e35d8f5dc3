"""Finding, starting and ending the stock commands."""

import ctypes
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Sequence

Process = subprocess.Popen  # of bytes
PR_SET_PDEATHSIG = 1  # of Linux' prctl


class RunError(Exception):
    """One sentence for the user, perhaps below the end of a log."""


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


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the end of the block: a command that is started in it is known to be there."""
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


def exit_code(name: str, body: Callable[[], int]) -> int:
    """What body returns; what goes wrong ends with one sentence and 2, and SIGTERM is as good as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return body()
    except BrokenPipeError:
        raise
    except (RunError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {error.filename}: {error.strerror}" if error.filename else f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; run it again to go on", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return 2


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]
