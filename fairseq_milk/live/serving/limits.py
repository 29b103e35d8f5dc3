"""Limits of a client, and of the number of clients."""

from collections import Counter
from contextlib import contextmanager
from typing import Iterator, NamedTuple


class Limits(NamedTuple):
    """Limits that keep a client from using memory or computing time that others need."""

    sessions: int = 256  # number of connections
    sessions_per_client: int = 32  # number of connections from one address
    idle_seconds: float = 300.0  # seconds without a message after which a connection is closed
    send_seconds: float = 30.0  # seconds within which a client must take an answer
    message_bytes: int = 8192  # bytes in a message; a larger one closes the connection
    words: int = 200  # words per sentence
    letters: int = 60  # letters per word


DEFAULTS = Limits()


class TooManyConnectionsError(Exception):
    """All sessions, or all of this client's address, are in use."""


class Admission:
    """Counts connections.  Used in the event loop only."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.by_client: Counter[str] = Counter()

    @property
    def sessions(self) -> int:
        return self.by_client.total()

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Reserve a place during the block; TooManyConnectionsError if there is none."""
        if self.sessions >= self.limits.sessions:
            raise TooManyConnectionsError(f"all {self.limits.sessions} sessions are in use: try again later")
        if self.by_client[client] >= self.limits.sessions_per_client:
            raise TooManyConnectionsError(f"all {self.limits.sessions_per_client} sessions of your address are in use")
        self.by_client[client] += 1
        try:
            yield
        finally:
            self.by_client -= Counter([client])  # which also forgets a client without connections
