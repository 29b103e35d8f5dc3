"""Checkpoints are written to a temporary file that then takes their place: an interrupted write leaves the old one."""

import os
import time
from typing import Any, BinaryIO, Callable, Optional, cast

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from ..console.errors import UserError, system_error

ATTEMPTS, PAUSE = 3, 2.5  # fairseq's; seconds

_save = checkpoint_utils.torch_persistent_save
_copy = PathManager.copy


def save_whole(obj: Any, filename: str, async_write: bool = False) -> None:
    """fairseq's `torch_persistent_save`, in which each attempt has a file of its own.

    fairseq's attempts share one: a second attempt is appended to what the first has left, and cannot be read.
    """
    if async_write or not PathManager.supports_rename(filename):
        _save(obj, filename, async_write)
        return
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return replace_whole(filename, lambda temporary: save_to(temporary, obj))
        except UserError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(PAUSE)


def save_to(path: str, obj: Any) -> None:
    with open(path, "wb") as file:
        recorder = ErrorRecordingFile(file)
        torch.save(obj, cast(BinaryIO, recorder))
        if recorder.error is not None:
            raise recorder.error


class ErrorRecordingFile:
    """A file in which torch can write to the end; the first error is kept.

    A write that fails is hidden by torch under an error of its own, and torch 1.13 ends the whole process.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.name = file, file.name
        self.error: Optional[OSError] = None

    def write(self, data: Any) -> int:
        self._try(lambda: self.file.write(data))
        return memoryview(data).nbytes

    def flush(self) -> None:
        self._try(self.file.flush)

    def _try(self, do: Callable[[], object]) -> None:
        try:
            if self.error is None:
                do()
        except OSError as error:
            self.error = error


def copy_whole(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """fairseq's `PathManager.copy`, with which it makes checkpoint_last.pt over the old one."""
    if not (overwrite and PathManager.supports_rename(dst_path)):
        return bool(_copy(src_path, dst_path, overwrite))
    replace_whole(dst_path, lambda temporary: _copy(src_path, temporary, overwrite=True))
    return True


def replace_whole(path: str, write: Callable[[str], object]) -> None:
    """`write` a temporary file, which then takes the place of `path` at once.

    Whoever is killed leaves the old file as it was, and so does a full disk, which is said in a sentence.
    """
    temporary = f"{path}.tmp"
    try:
        write(temporary)
        PathManager.rename(temporary, path)
    except (OSError, RuntimeError) as error:  # RuntimeError: torch's
        if os.path.exists(temporary):
            os.remove(temporary)
        reason = system_error(error)
        raise UserError(f"{path} could not be written: {reason}; the checkpoint before it is untouched") from error


def install() -> None:
    """From here on fairseq writes checkpoints as above."""
    checkpoint_utils.torch_persistent_save = save_whole
    PathManager.copy = staticmethod(copy_whole)
