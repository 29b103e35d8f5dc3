"""Adapts fairseq's commands: errors, defaults of options, standard input and log level."""

import contextlib
import logging
import os
import sys
from io import TextIOWrapper
from typing import Any, Iterator, List

from ..console.uncaught import is_command, print_user_errors


def install() -> None:
    """In a command of fairseq, print an uncaught `UserError` as its sentence; in Python it keeps its traceback.

    HYDRA_FULL_ERROR is set because `fairseq-hydra-train` would print its own traceback.
    """
    if is_command("fairseq-", "fairseq_cli"):
        print_user_errors()
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")


def replace_default(parser: Any, option: str, fairseq_default: Any, default: Any) -> bool:
    """Change the default of an option; False if the command does not have it, or has already changed it."""
    if parser.get_default(option) != fairseq_default:
        return False
    parser.set_defaults(**{option: default})
    return True


def replace_invalid_input() -> None:
    """Read standard input as UTF-8 with U+FFFD for invalid bytes, as in `fairseq-milk stream`."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")


def only_warnings() -> None:
    """Log warnings only: importing fairseq turns on the debug messages of all libraries."""
    logging.getLogger().setLevel(logging.WARNING)


@contextlib.contextmanager
def command_line(argv: List[str]) -> Iterator[None]:
    """Set `sys.argv` during the block: fairseq's parsers look for --user-dir there, whatever arguments they get."""
    before, sys.argv = sys.argv, argv
    try:
        yield
    finally:
        sys.argv = before
