"""What one client may use, and how many clients there may be."""

from collections import Counter
from contextlib import contextmanager
from typing import Iterator, NamedTuple


class Limits(NamedTuple):
    """With these a client cannot take memory or computing time that others need."""

    sessions: int = 256  # connections at once
    sessions_per_client: int = 32  # of them from one address
    idle_seconds: float = 300.0  # without a message, after which a connection is closed
    send_seconds: float = 30.0  # for a client to take an answer, after which its connection is closed
    message_bytes: int = 8192  # a larger message closes the connection
    words: int = 200  # per sentence
    letters: int = 60  # per word


DEFAULTS = Limits()


class NoPlaceError(Exception):
    """One sentence: there is no place for this connection."""


class Admission:
    """Counts the connections.  Used from the event loop only."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.by_client: Counter[str] = Counter()

    @property
    def sessions(self) -> int:
        return self.by_client.total()

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Holds a place for the duration of the block; NoPlaceError if there is none."""
        if self.sessions >= self.limits.sessions:
            raise NoPlaceError(f"all {self.limits.sessions} sessions are in use: try again later")
        if self.by_client[client] >= self.limits.sessions_per_client:
            raise NoPlaceError(f"all {self.limits.sessions_per_client} sessions of your address are in use")
        self.by_client[client] += 1
        try:
            yield
        finally:
            self.by_client[client] -= 1
            if not self.by_client[client]:
                del self.by_client[client]
