"""fairseq's commands: how they end with a `UserError`, their parser, their standard input and their log."""

import contextlib
import logging
import os
import sys
from io import TextIOWrapper
from typing import Any, Iterator, List

from ..console.uncaught import is_command, print_user_errors


def install() -> None:
    """In a command of fairseq, print an uncaught `UserError` as its sentence; in Python it keeps its traceback.

    Hydra, under `fairseq-hydra-train`, would print a traceback of its own.
    """
    if is_command("fairseq-", "fairseq_cli"):
        print_user_errors()
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")


def replace_default(parser: Any, option: str, fairseq_default: Any, default: Any) -> bool:
    """Give an option of fairseq another default; False if the command does not have it, or has changed it itself."""
    if parser.get_default(option) != fairseq_default:
        return False
    parser.set_defaults(**{option: default})
    return True


def replace_invalid_input() -> None:
    """Standard input is UTF-8, and what is not becomes U+FFFD, as in `fairseq-milk stream`."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")


def only_warnings() -> None:
    """Log no more than warnings: importing fairseq turns on the debugging output of every library."""
    logging.getLogger().setLevel(logging.WARNING)


@contextlib.contextmanager
def command_line(argv: List[str]) -> Iterator[None]:
    """`sys.argv` inside the block: fairseq's parsers look there for --user-dir, whatever arguments they are given."""
    before, sys.argv = sys.argv, argv
    try:
        yield
    finally:
        sys.argv = before
