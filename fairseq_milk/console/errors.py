"""Errors that are shown to the user as one sentence."""

from typing import Any, Mapping, Optional
from unicodedata import category

TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # control characters that set the direction of text
LARGEST = 2**31 - 1  # largest value of a numeric option: integers and their sums then fit into any tensor


class UserError(ValueError):
    """Bad input, described in one sentence that names the option, file or line.

    Every command prints that sentence instead of a traceback (`console.uncaught`); in Python it is an ordinary
    exception.  Control characters that it quotes from a file are escaped: see `printable`.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def printable(text: str) -> str:
    """The text with control and direction characters replaced by escapes such as \\x1b and \\n."""
    return "".join(c.encode("unicode_escape").decode("ascii") if _controls(c) else c for c in text)


def _controls(character: str) -> bool:
    return category(character) in ("Cc", "Cs", "Zl", "Zp") or character in TURNS


class RunError(Exception):
    """A run failed: one sentence for the user, possibly preceded by the end of a log."""


def require(condition: bool, option: str, value: object, what: str) -> None:
    """Raise a UserError `--option what, got value` unless the condition holds."""
    if not condition:
        raise UserError(f"--{option.replace('_', '-')} {what}, got {value}")


def check_numbers(options: Mapping[str, Any]) -> None:
    """Raise a UserError for an option whose number is NaN, infinite or too large to compute with."""
    for option, value in options.items():
        if isinstance(value, (int, float)):
            require(abs(value) <= LARGEST, option, value, f"must lie between -{LARGEST} and {LARGEST}")


def system_error(error: BaseException) -> str:
    """The message of the OSError that caused an error, which torch wraps in its own; else the error's first line."""
    cause: Optional[BaseException] = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__context__
    return first_line(error)


def first_line(error: BaseException) -> str:
    """The first line of the message, or the name of the exception if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def reason(error: BaseException) -> str:
    """The name of the exception and the first line of its message."""
    return f"{type(error).__name__} {first_line(error)}"
