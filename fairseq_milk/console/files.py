"""Writing files atomically, and reading them with errors for the user."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Union

from .errors import UserError


def write_atomically(path: Union[str, Path], content: Union[str, bytes]) -> None:
    """Write to a temporary file and rename it, so that an interruption leaves the old file.  Text is UTF-8."""
    partial = f"{path}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def read_json(path: Union[str, Path]) -> Any:
    """The content of a JSON file; None if it does not exist or is not JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def refuse_endless(path: Union[str, Path]) -> None:
    """Raise a UserError for a device or a pipe, also behind a link.  What does not exist is left to the reader."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise UserError(f"{path} is not a regular file")


def read_bytes(path: Union[str, Path], most: int = -1) -> bytes:
    """The content of a regular file, or its first `most` bytes; UserError if it cannot be read."""
    refuse_endless(path)
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error


def require_text(path: Union[str, Path], option: str) -> None:
    """Raise a UserError if the file given to `option` cannot be read or has a line that is not UTF-8."""
    number = 0
    try:
        with open(path, "rb") as file:
            for line in file:
                number += 1
                line.decode("utf-8")
    except OSError as error:
        raise UserError(f"{option} {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{option} {path}: line {number} is not UTF-8") from error


def digest(value: Any) -> str:
    """The first ten hexadecimal digits of the SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]
