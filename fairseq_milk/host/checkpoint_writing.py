"""Writes checkpoints atomically: to a temporary file that then replaces the old one."""

import os
import time
from typing import Any, BinaryIO, Callable, Optional, cast

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from ..console.errors import UserError, system_error

ATTEMPTS, PAUSE = 3, 2.5  # seconds, as in fairseq

_save = checkpoint_utils.torch_persistent_save
_copy = PathManager.copy


def save_whole(obj: Any, filename: str, async_write: bool = False) -> None:
    """Replacement for fairseq's `torch_persistent_save` that writes each attempt to a new file.

    fairseq appends a second attempt to the remains of the first, which gives an unreadable file.
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
    """A file that records the first error, which torch hides under its own, and ignores later writes."""

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
    """Replacement for fairseq's `PathManager.copy`, with which it overwrites checkpoint_last.pt."""
    if not (overwrite and PathManager.supports_rename(dst_path)):
        return bool(_copy(src_path, dst_path, overwrite))
    replace_whole(dst_path, lambda temporary: _copy(src_path, temporary, overwrite=True))
    return True


def replace_whole(path: str, write: Callable[[str], object]) -> None:
    """Let `write` write a temporary file, which then replaces `path`.

    A kill or a full disk leaves the old file; a full disk is reported in one sentence.
    """
    temporary = f"{path}.tmp"
    try:
        write(temporary)
        PathManager.rename(temporary, path)
    except (OSError, RuntimeError) as error:  # RuntimeError: raised by torch
        if os.path.exists(temporary):
            os.remove(temporary)
        reason = system_error(error)
        raise UserError(f"{path} could not be written: {reason}; the previous checkpoint is kept") from error


def install() -> None:
    """Install the functions of this module in fairseq."""
    checkpoint_utils.torch_persistent_save = save_whole
    PathManager.copy = staticmethod(copy_whole)
