"""The exit code of a command, and the sentence that it prints when it fails."""

import signal
import sys
from typing import Callable, Optional

from .errors import RunError


def exit_code(name: str, body: Callable[[], Optional[int]]) -> int:
    """The value that body returns, 0 for None.

    2 after an error, which is printed as one sentence; 130 after Ctrl-C or SIGTERM.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # raises KeyboardInterrupt
    try:
        return body() or 0
    except BrokenPipeError:
        raise
    except (RunError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {error.filename}: {error.strerror}" if error.filename else f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; run it again to continue", file=sys.stderr)
        return interrupted()
    finally:
        signal.signal(signal.SIGTERM, before)
    return 2


def interrupted() -> int:
    """The exit code after Ctrl-C, when the KeyboardInterrupt has been caught: 130.

    CPython remembers an interrupt that came inside exec(text), as many imports use it, although it was caught, and ends
    the process by SIGINT instead of with the exit code.  The next exec(text) makes it forget.
    """
    exec("")
    return 130
