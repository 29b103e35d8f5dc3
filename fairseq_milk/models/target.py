"""Target sentences under way, one token at a time: what the generator asks of the decoder of any model."""

from abc import ABC, abstractmethod
from typing import Tuple

from torch import Tensor

from ..attention import Heads, Memory, Queries
from ..modules import LSTMState
from .decoder import RNMTDecoder


class Target(ABC):
    """A batch of sentences, all about to write target token i, each with heads of its own.

    Call `ask` with the token before, `read` while sentences are `waiting`, then `write`, and `accept` to go on.
    It is handed one source state at a time and never sees more than has been read.
    """

    i = 0  # the target token that is about to be written, from 1

    @property
    @abstractmethod
    def read_so_far(self) -> Tensor:
        """Source tokens read.  (B,)."""

    @abstractmethod
    def ask(self, tokens: Tensor) -> None:
        """Target token i - 1 is this one (EOS before the first): what token i asks of the source.  tokens: (B,)."""

    @abstractmethod
    def waiting(self, exhausted: Tensor) -> Tensor:
        """Which sentences have a head that has not stopped, and can read on?

        exhausted: (B,) bool, nothing is left to read.  -> (B,) bool.
        """

    @abstractmethod
    def read(self, h: Tensor, rows: Tensor, forced: Tensor) -> None:
        """One more source state for some sentences.  rows: (R,), which; h: (R, D), theirs.

        forced: (B,) bool, the READ was not the schedule's own.
        """

    @abstractmethod
    def know(self, h: Tensor, lengths: Tensor) -> None:
        """The whole source at once, before the first token, for who keeps count of what has been read.

        h: (B, J, D), lengths: (B,).
        """

    @abstractmethod
    def furthest(self) -> Tensor:
        """With the whole source known: the source tokens that the schedule reads before token i is written.  (B,)."""

    @abstractmethod
    def send(self, position: Tensor, rows: Tensor) -> None:
        """All heads of these sentences look at this token next: a READ was not the schedule's own.

        position: (B,), rows: (B,) bool.
        """

    @abstractmethod
    def write(self) -> Tuple[Tensor, Tensor]:
        """What the output layer takes, (B, D), and what was looked at, (B, J).  Nobody is waiting."""

    @abstractmethod
    def accept(self) -> None:
        """What was written stands: keep the state after it."""

    @abstractmethod
    def select(self, rows: Tensor) -> None:
        """Only these sentences go on.  rows: (B',) indices."""


class RNMTTarget(Target):
    def __init__(self, decoder: RNMTDecoder, batch: int, room: int) -> None:
        self.decoder, self.attention = decoder, decoder.attention
        self.state = self.after = decoder.begin(batch)
        self.memory: Memory = self.attention.nothing_read(batch, self.state.c, room)
        self.heads: Heads = self.attention.begin_heads(self.memory)
        self.s: LSTMState
        self.queries: Queries = {}

    @property
    def read_so_far(self) -> Tensor:
        return self.memory.read

    def ask(self, tokens: Tensor) -> None:
        self.i += 1
        self.s = self.decoder.query(tokens, self.state)
        self.queries = self.attention.queries(self.s.h)

    def waiting(self, exhausted: Tensor) -> Tensor:
        self.heads = self.attention.seek(self.queries, self.memory, self.heads, self.i)
        return ~self.heads.ready & ~exhausted

    def read(self, h: Tensor, rows: Tensor, forced: Tensor) -> None:
        self.memory = self.attention.read(self.memory, h, rows)
        self.send(self.read_so_far - 1, forced)

    def know(self, h: Tensor, lengths: Tensor) -> None:
        self.memory = self.attention.remember(h, lengths)

    def furthest(self) -> Tensor:
        self.heads = self.attention.seek(self.queries, self.memory, self.heads, self.i)
        return self.heads.furthest(self.read_so_far)

    def send(self, position: Tensor, rows: Tensor) -> None:
        self.heads = self.heads.sent_to(position, rows)

    def write(self) -> Tuple[Tensor, Tensor]:
        out = self.attention.attend(self.queries, self.memory.filled().seen_by(self.heads))
        features, self.after = self.decoder.write(self.s, out.c, self.state)
        return features, out.beta

    def accept(self) -> None:
        self.state, self.heads = self.after, self.heads.after_write(self.read_so_far)

    def select(self, rows: Tensor) -> None:
        self.memory, self.heads = self.memory.select(rows), self.heads.select(rows)
        self.state, self.s = self.state.select(rows), self.s.select(rows)
        self.queries = {name: x.index_select(0, rows) for name, x in self.queries.items()}
