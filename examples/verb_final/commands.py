"""Finding, starting and ending the stock commands, and files that are whole or not there."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, List, Sequence

Process = subprocess.Popen  # of bytes


class RunError(Exception):
    """One sentence for the user, perhaps below the end of a log."""


def command(name: str) -> str:
    """The command beside this Python, or on the PATH."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if found is None:
        raise RunError(f"there is no command {name}: run scripts/setup.sh first")
    return found


def start(words: Sequence[str], log: Path, single_thread: bool, keep_open: Sequence[int] = ()) -> "Process[bytes]":
    """Start a command in a group of its own: Ctrl-C reaches us alone, and we end it.

    single_thread: if several run at once, or their threads would fight for the cores.
    """
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} if single_thread else {}
    with open(log, "ab") as file:
        return Process(
            words,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONWARNINGS": "ignore", **threads},
            start_new_session=True,
            pass_fds=keep_open,
        )


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
    """What body returns; what goes wrong ends with one sentence, and SIGTERM is as good as Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return body()
    except (RunError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {error.filename}: {error.strerror}" if error.filename else f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 1


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]


def write_atomically(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def read_json(path: Path) -> Any:
    """None if there is no such file, or nothing that can be read in it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
