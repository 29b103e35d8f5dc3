"""Deferring signals to the end of a block."""

import signal
from contextlib import contextmanager
from typing import Iterator, List


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Ctrl-C and SIGTERM take effect after the block, so that a command started in it is always registered."""
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
