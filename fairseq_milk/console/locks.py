"""Locks between processes, as files: free as soon as their last holder ends, however that happens.

Written with `flock` instead of the package filelock because the commands of a sweep inherit the lock of their run.
"""

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Iterator, Optional

from .errors import RunError


def try_lock(path: Path) -> Optional[IO[str]]:
    """The open file that holds the lock until it is closed, here and in every process that inherits it.

    None if another process has it.
    """
    file = open(path, "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except OSError as error:
        file.close()
        raise RunError(f"{path} cannot be locked ({error.strerror}): its file system must have flock") from error
    return file


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock and hold it in the block."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
