"""Files that are whole or not there."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Union

from .errors import UserError


def write_atomically(path: Union[str, Path], content: Union[str, bytes]) -> None:
    """Whoever is killed on the way leaves the old file as it was, and at most a .partial beside it.  Text in UTF-8."""
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
    """None if there is no such file, or nothing that can be read in it."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def require_text(path: Union[str, Path], option: str) -> None:
    """UserError unless the file that `option` names can be read and is UTF-8, with the line that is not."""
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
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]
