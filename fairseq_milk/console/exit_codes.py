"""How a command ends: the exit code, and one sentence for what went wrong."""

import signal
import sys
from typing import Any, Callable

from .errors import RunError


def exit_code(name: str, body: Callable[[], int]) -> int:
    """What body returns; what goes wrong ends with one sentence and 2, and SIGTERM is as good as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return body()
    except BrokenPipeError:
        raise
    except (RunError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {error.filename}: {error.strerror}" if error.filename else f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; run it again to go on", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return 2


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
