"""Errors that are shown to the user as one sentence."""

from typing import Any, Mapping, Optional
from unicodedata import category

TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # the direction of the text that follows
LARGEST = 2**31 - 1  # of any number that is an option: whole numbers and their sums then fit every tensor


class UserError(ValueError):
    """Bad input, described in one sentence that names the option, file or line.

    Every command prints that sentence instead of a traceback (`console.uncaught`); in Python it is an exception like
    others.  What it quotes from a file cannot control the terminal: see `printable`.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def printable(text: str) -> str:
    """The text with escapes, such as \\x1b and \\n, for what would control a terminal or turn the text around."""
    return "".join(c.encode("unicode_escape").decode("ascii") if _controls(c) else c for c in text)


def _controls(character: str) -> bool:
    return category(character) in ("Cc", "Cs", "Zl", "Zp") or character in TURNS


class RunError(Exception):
    """One sentence for the user, perhaps below the end of a log."""


def require(condition: bool, option: str, value: object, what: str) -> None:
    """UserError that --option `what`, unless the condition holds."""
    if not condition:
        raise UserError(f"--{option.replace('_', '-')} {what}, got {value}")


def check_numbers(options: Mapping[str, Any]) -> None:
    """Refuse what is not a number, or is one that nothing could be computed with, by the name of its option."""
    for option, value in options.items():
        if isinstance(value, (int, float)):
            require(abs(value) <= LARGEST, option, value, f"must lie between -{LARGEST} and {LARGEST}")


def system_error(error: BaseException) -> str:
    """The operating system's word for it, which torch buries under its own."""
    cause: Optional[BaseException] = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__context__
    return first_line(error)


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def reason(error: BaseException) -> str:
    return f"{type(error).__name__} {first_line(error)}"
