"""Starts a program of this folder: prints a line before fairseq is imported, which takes seconds.

Errors and Ctrl-C end the program with one sentence.
"""

import logging
import os
import signal
from typing import Any, Callable


def run(name: str, first: str, body: Callable[[], int]) -> int:
    """Run `body`, which imports what it needs; returns the exit code.  first: the line that is printed at once."""

    def leave(number: int, frame: Any) -> None:
        """End without an exception, which some imports would suppress or replace; no work has been started."""
        os.write(2, f"{name}: interrupted; run it again to continue\n".encode())
        os._exit(130)

    before, silent = signal.signal(signal.SIGINT, leave), logging.root.manager.disable
    print(first, flush=True)
    logging.disable(logging.INFO)  # messages of fairseq and matplotlib
    try:
        import fairseq.tasks  # noqa: F401  the long imports, here while Ctrl-C raises nothing
        import matplotlib.figure  # noqa: F401

        from fairseq_milk.console.exit_codes import exit_code

        signal.signal(signal.SIGINT, before)
        return exit_code(name, body)
    finally:
        logging.disable(silent)
        signal.signal(signal.SIGINT, before)
