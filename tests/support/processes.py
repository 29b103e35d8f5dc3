"""Functions run in a child process that can be killed.  It is forked, which saves the import of fairseq."""

import contextlib
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Sequence

from fairseq_milk.console.uncaught import print_user_errors

FORK = multiprocessing.get_context("fork")


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def resident(pid: Optional[int] = None) -> int:
    """The resident memory of a process in bytes, by default of this one."""
    return int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def child(work: Callable[[], object], stderr: Path, other_ends: Sequence[int] = (), **streams: int) -> Iterator[Any]:
    """Run `work` in a child process whose standard error goes to a file.  streams: stdin, stdout as file descriptors.

    other_ends: the other ends of these pipes, which the child closes; its copies would keep the pipes open.
    The child is killed at the end of the block.
    """

    def redirected() -> None:
        for end in other_ends:
            os.close(end)
        with open(stderr, "wb") as file:
            for number, fd in ((0, streams.get("stdin")), (1, streams.get("stdout")), (2, file.fileno())):
                if fd is not None:
                    os.dup2(fd, number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # not those of pytest
        print_user_errors()
        try:
            work()
        except Exception:
            sys.excepthook(*sys.exc_info())  # as at the end of a command; multiprocessing would print a traceback
            raise SystemExit(1) from None

    process = FORK.Process(target=redirected)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def outcome(work: Callable[[], object], stderr: Path, timeout: float = 120.0) -> int:
    """Run `work` in a child process and return its exit code, negative for a signal."""
    with child(work, stderr) as process:
        process.join(timeout)
        assert process.exitcode is not None, f"still at work after {timeout} seconds"
        return int(process.exitcode)


def half_and_killed(write: Callable[..., Any], after: int) -> Callable[..., Any]:
    """`write(source, file)` that is killed in the middle of its (after + 1)-th call.  file: a path or a binary file."""
    calls: List[int] = []

    def wrapper(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) <= after:
            return write(source, target, *args, **kwargs)
        path = target if isinstance(target, str) else target.name
        write(source, target, *args, **kwargs)
        if not isinstance(target, str):
            target.flush()
        os.truncate(path, os.path.getsize(path) // 2)
        kill_me()

    return wrapper
