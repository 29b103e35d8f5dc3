"""How a program of this folder starts: with a line at once, as importing fairseq takes some seconds.

From that line on whatever ends it is one sentence, Ctrl-C too.
"""

import logging
import os
import signal
from typing import Any, Callable


def run(name: str, first: str, body: Callable[[], int]) -> int:
    """The exit code.  first: what is said at once; body imports what it needs."""

    def leave(number: int, frame: Any) -> None:
        """Not by an exception, which some imports would swallow; nothing has been begun."""
        os.write(2, f"{name}: interrupted; run it again to go on\n".encode())
        os._exit(130)

    before, silent = signal.signal(signal.SIGINT, leave), logging.root.manager.disable
    print(first, flush=True)
    logging.disable(logging.INFO)  # fairseq and matplotlib speak of themselves
    try:
        from fairseq_milk.console.exit_codes import exit_code

        signal.signal(signal.SIGINT, before)
        return exit_code(name, body)
    finally:
        logging.disable(silent)
        signal.signal(signal.SIGINT, before)
