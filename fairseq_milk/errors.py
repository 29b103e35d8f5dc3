"""Errors for people."""

from typing import Any, Mapping

LARGEST = 2**31 - 1  # of any number that is an option: whole numbers and their sums then fit every tensor


class UserError(SystemExit, ValueError):
    """Bad input, said in one sentence that names the option, file or line.

    It leaves a command with that sentence instead of a traceback, and can be caught as a ValueError in Python.
    """


def require(condition: bool, option: str, value: object, what: str) -> None:
    """UserError that --option `what`, unless the condition holds."""
    if not condition:
        raise UserError(f"--{option.replace('_', '-')} {what}, got {value}")


def check_numbers(options: Mapping[str, Any]) -> None:
    """Refuse what is not a number, or is one that nothing could be computed with, by the name of its option."""
    for option, value in options.items():
        if isinstance(value, (int, float)):
            require(abs(value) <= LARGEST, option, value, f"must lie between -{LARGEST} and {LARGEST}")
