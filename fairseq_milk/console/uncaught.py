"""Printing an uncaught `UserError` as one sentence, in commands that are not ours.

`fairseq-milk` catches its errors itself (`fairseq_milk.cli`); `fairseq-train` and `simuleval` do not.
"""

import sys
from pathlib import Path
from typing import Any, Optional, Type

from .errors import UserError

RAISED = f"{UserError.__module__}.{UserError.__qualname__}: "  # as a traceback shows it


def is_command(*prefixes: str) -> bool:
    """Whether this process runs a command, a script or a module (`python -m`) whose name begins with a prefix."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    script = Path(sys.argv[0]) if sys.argv else Path()
    names = (getattr(spec, "name", None) or "", script.name, script.parent.name)
    return any(name.startswith(prefixes) for name in names)


def print_user_errors() -> None:
    """Install an exception hook that prints the sentence of an uncaught `UserError` instead of a traceback."""
    otherwise = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, traceback: Any) -> None:
        sentence = sentence_of(error)
        if sentence is None:
            otherwise(kind, error, traceback)
        else:
            print(sentence, file=sys.stderr)

    sys.excepthook = hook


def sentence_of(error: BaseException) -> Optional[str]:
    """The sentence of a `UserError`, also of one raised in a process of torch's `spawn`; None for other errors."""
    if isinstance(error, UserError):
        return str(error)
    last = (str(error).strip().splitlines() or [""])[-1]
    return last[len(RAISED) :] if last.startswith(RAISED) else None
