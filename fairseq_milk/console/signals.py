"""Signals that wait for the end of a block."""

import signal
from contextlib import contextmanager
from typing import Iterator, List


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the end of the block: a command that is started in it is known to be there."""
    pending: List[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, frame: pending.append(number)) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before):
            signal.signal(number, handler)
    if pending:
        raise KeyboardInterrupt
