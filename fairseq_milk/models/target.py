"""Target sentences during decoding, one token at a time: the interface between generator and decoder."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Tuple

import torch
from torch import Tensor

from ..attention import Heads, Memory, Queries
from ..modules import LSTMState
from .decoder import RNMTDecoder


class Target(ABC):
    """A batch of sentences that write target token i next, each with its own heads.

    Call `ask` with the previous token, `read` while sentences are `waiting`, then `write`, and `accept` to continue.
    It gets one source state at a time and never sees more than has been read.
    """

    i = 0  # the number of the next target token, from 1

    @property
    @abstractmethod
    def read_so_far(self) -> Tensor:
        """Source tokens read.  (B,)."""

    @abstractmethod
    def ask(self, tokens: Tensor) -> None:
        """Compute the query of token i from token i - 1 (EOS before the first).  tokens: (B,)."""

    @abstractmethod
    def waiting(self, exhausted: Tensor) -> Tensor:
        """The sentences that have a head without a stop and can READ, (B,) bool.

        exhausted: (B,) bool, the source has ended.
        """

    @abstractmethod
    def read(self, h: Tensor, rows: Tensor, forced: Tensor) -> None:
        """Append one source state to some sentences.  rows: (R,), their indices; h: (R, D).

        forced: (B,) bool, the READ was required by a knob and not by the schedule.
        """

    @abstractmethod
    def know(self, h: Tensor, lengths: Tensor) -> None:
        """Set the whole source before the first token; the caller keeps count of what has been read.

        h: (B, J, D), lengths: (B,).
        """

    @abstractmethod
    def furthest(self) -> Tensor:
        """With the whole source known: the number of source tokens that the schedule reads before token i.  (B,)."""

    @abstractmethod
    def send(self, position: Tensor, rows: Tensor) -> None:
        """Move all heads of these sentences to this token, after a READ that was required by a knob.

        position: (B,), rows: (B,) bool.
        """

    @abstractmethod
    def write(self) -> Tuple[Tensor, Tensor]:
        """The input of the output layer, (B, D), and the attention, (B, J).  No sentence is waiting."""

    @abstractmethod
    def accept(self) -> None:
        """Accept the written token: keep the state after it."""

    @abstractmethod
    def select(self, rows: Tensor) -> None:
        """Keep only these sentences.  rows: (B',) indices."""


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


class RNMTSentence(RNMTTarget):
    """One sentence whose source arrives token by token: positions and lengths are Python numbers, not tensors.

    It decides as `RNMTTarget` does, against which it is tested, with half of the operations.
    """

    def __init__(self, decoder: RNMTDecoder, room: int) -> None:
        super().__init__(decoder, 1, room)

    @property
    def heads(self) -> Heads:
        device = self.memory.h.device
        return Heads(torch.tensor([self.position], device=device), torch.tensor([self.stopped], device=device))

    @heads.setter
    def heads(self, heads: Heads) -> None:
        self.position, self.stopped = int(heads.position), bool(heads.stopped)

    def waiting(self, exhausted: Tensor) -> Tensor:
        if not self.stopped:
            self.position, self.stopped = self.attention.seek_one(self.queries, self.memory, self.position, self.i)
        return torch.zeros_like(exhausted) if self.stopped else ~exhausted

    def read(self, h: Tensor, rows: Tensor, forced: Tensor) -> None:
        length = int(self.memory.lengths)
        if length >= self.memory.size:
            self.memory = self.memory.doubled()
        self.memory.h[:, length] = h
        for name, energy in self.attention.energies().items():
            self.memory.keys[name][:, length] = energy.project(h)
        self.memory = replace(self.memory, lengths=self.memory.lengths + 1)
        if bool(forced):
            self.position, self.stopped = length, False

    def write(self) -> Tuple[Tensor, Tensor]:
        end = min(self.position + 1, int(self.memory.lengths))
        c, beta = self.attention.look_back(self.queries, self.memory, end)
        features, self.after = self.decoder.write(self.s, c, self.state)
        return features, beta

    def accept(self) -> None:
        self.state, self.stopped = self.after, False
        self.position = min(self.position, int(self.memory.lengths) - 1)
