"""Archives of models: unpacked beside nobody's files, without links or paths that lead elsewhere, and never removed."""

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
    """fairseq's function of this name: a folder as it is, an archive unpacked; None if there is neither.

    fairseq's own writes wherever the archive says, and puts the folder in the place of the user's archive.
    """
    try:
        local: str = file_utils.cached_path(archive_file, cache_dir=None)
    except (OSError, ValueError):
        return None
    return local if os.path.isdir(local) else unpacked(local, os.path.getmtime(local))


@cache
def unpacked(path: str, changed: float) -> str:
    """The folder, temporary, with the contents of an archive; the one that holds everything if there is one."""
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
        raise UserError(f"{path} is no folder and no archive of a model: {first_line(error)}") from error
    names = os.listdir(folder)
    only = os.path.join(folder, names[0]) if len(names) == 1 else ""
    return only if os.path.isdir(only) else folder


def require_inside(member: tarfile.TarInfo, path: str) -> None:
    """UserError for a member that is no plain file or folder below the place where the archive is unpacked."""
    parts = member.name.replace("\\", "/").split("/")
    if os.path.isabs(member.name) or ".." in parts:
        raise UserError(f"{path} is refused: {member.name!a} in it would be written outside of its folder")
    if not (member.isfile() or member.isdir()):
        raise UserError(f"{path} is refused: {member.name!a} in it is neither a file nor a folder")
