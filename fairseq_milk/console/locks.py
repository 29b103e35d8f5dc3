"""Locks between processes, as files.  The operating system releases a lock when its last holder ends.

`flock` and not the package filelock: the commands of a sweep inherit the open file, and with it the lock of their run.
"""

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Iterator, Optional

from .errors import RunError


def try_lock(path: Path) -> Optional[IO[str]]:
    """The open file that holds the lock until it is closed here and in every process that inherits it.

    None if another process holds the lock.
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
    """Wait for the lock and hold it during the block."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
