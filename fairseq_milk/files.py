"""Files that are whole or not there."""

import json
import os
from pathlib import Path
from typing import Any, Union


def write_atomically(path: Union[str, Path], text: str) -> None:
    """Whoever is killed on the way leaves the old file as it was, and at most a .partial beside it."""
    partial = f"{path}.partial"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def read_json(path: Union[str, Path]) -> Any:
    """None if there is no such file, or nothing that can be read in it."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
