"""Unpacks archives of models into a temporary folder, refusing links and paths outside of it; keeps the archive."""

import atexit
import os
import shutil
import tarfile
import tempfile
from functools import cache
from typing import Optional

from fairseq import file_utils

from ..console.errors import UserError, first_line

MOST_BYTES = 64 * 2**30
MOST_MEMBERS = 10_000


def load_archive_file(archive_file: str) -> Optional[str]:
    """Replacement for fairseq's function: the folder, or the folder of an unpacked archive; None if there is neither.

    fairseq's function writes to any path in the archive, and replaces the user's archive by the folder.
    """
    try:
        local: str = file_utils.cached_path(archive_file, cache_dir=None)
    except (OSError, ValueError):
        return None
    return local if os.path.isdir(local) else unpacked(local, os.path.getmtime(local))


@cache
def unpacked(path: str, changed: float) -> str:
    """The temporary folder with the contents of an archive, or its only subfolder if there is one."""
    folder = tempfile.mkdtemp(prefix="fairseq-milk-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        with tarfile.open(path, "r:*") as archive:
            size = 0
            for number, member in enumerate(archive):
                size += member.size
                if number >= MOST_MEMBERS or size > MOST_BYTES:
                    raise UserError(f"{path} is refused: it holds more than {MOST_MEMBERS} files or {MOST_BYTES} bytes")
                require_inside(member, path)
                archive.extract(member, folder, set_attrs=False)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} is neither a folder nor an archive of a model: {first_line(error)}") from error
    names = os.listdir(folder)
    only = os.path.join(folder, names[0]) if len(names) == 1 else ""
    return only if os.path.isdir(only) else folder


def require_inside(member: tarfile.TarInfo, path: str) -> None:
    """Raise a UserError unless a member is a plain file or folder inside the unpacked folder."""
    parts = member.name.replace("\\", "/").split("/")
    if os.path.isabs(member.name) or ".." in parts:
        raise UserError(f"{path} is refused: {member.name!a} in it would be written outside of its folder")
    if not (member.isfile() or member.isdir()):
        raise UserError(f"{path} is refused: {member.name!a} in it is neither a file nor a folder")
