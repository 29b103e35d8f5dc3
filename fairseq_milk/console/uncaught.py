"""What is printed when an exception ends the process: the sentence of a `UserError` in a command of others.

`fairseq-milk` catches its errors itself (`fairseq_milk.cli`).  In `fairseq-train` or `simuleval` nobody does.
"""

import sys
from pathlib import Path
from typing import Any, Callable, Optional, Type

from .errors import UserError

Hook = Callable[[Type[BaseException], BaseException, Any], Any]
RAISED = f"{UserError.__module__}.{UserError.__qualname__}: "  # as a traceback shows it


def is_command(*prefixes: str) -> bool:
    """Whether this process runs a command, a script or a module (`python -m`) whose name begins with a prefix."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    script = Path(sys.argv[0]) if sys.argv else Path()
    names = (getattr(spec, "name", None) or "", script.name, script.parent.name)
    return any(name.startswith(prefixes) for name in names)


def print_user_errors() -> None:
    """From here on an uncaught `UserError` ends this process with its sentence instead of a traceback, and with 1."""
    if not isinstance(sys.excepthook, _SentenceHook):
        sys.excepthook = _SentenceHook(sys.excepthook)


class _SentenceHook:
    def __init__(self, otherwise: Hook) -> None:
        self.otherwise = otherwise

    def __call__(self, kind: Type[BaseException], error: BaseException, traceback: Any) -> None:
        sentence = sentence_of(error)
        if sentence is None:
            self.otherwise(kind, error, traceback)
        else:
            print(sentence, file=sys.stderr)


def sentence_of(error: BaseException) -> Optional[str]:
    """The sentence of a `UserError`, also of one that a process of torch's `spawn` has ended with; None for others."""
    if isinstance(error, UserError):
        return str(error)
    last = (str(error).strip().splitlines() or [""])[-1]
    return last[len(RAISED) :] if last.startswith(RAISED) else None
