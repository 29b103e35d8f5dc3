"""Greedy simultaneous decoding by the rules of `schedule`: the state of a batch, and how it grows token by token.

A `Decoding` is handed one source state at a time and never sees more than has been read.  The streaming session is one
of a single sentence; `batch` has the one of `fairseq-generate`, which knows the whole source.
"""

from math import inf
from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from ..attention import Heads, Memory
from .schedule import DecodingOptions, must_read, too_long


class Step(NamedTuple):
    """One target token for every sentence of the batch."""

    tokens: Tensor  # (B,)
    scores: Tensor  # (B,), log-probabilities
    delays: Tensor  # (B,), g_i
    beta: Tensor  # (B, J'), what it was looking at, of all that any sentence has read


class Decoding:
    """A batch of sentences under translation, all about to write target token i, each with its own head position.

    Ask `wants_to_read`, `read` for those that do, and `write` when nobody does.
    """

    def __init__(self, model: Any, batch: int, options: DecodingOptions, room: int = 16) -> None:
        if model.training:
            raise ValueError("a model decodes in evaluation mode, without dropout: call model.eval() first")
        self.decoder, self.attention, self.options = model.decoder, model.decoder.attention, options
        dictionary = self.decoder.dictionary
        self.pad, self.eos, self.unk = dictionary.pad(), dictionary.eos(), dictionary.unk()
        self.i = 1
        self.begun = False  # everybody reads first
        self.state = self.decoder.begin(batch)
        like = self.state.c
        self.memory: Memory = self.attention.nothing_read(batch, like, room)
        self.heads: Heads = self.attention.begin_heads(self.memory)
        self.tokens = torch.full((batch,), self.eos, dtype=torch.long, device=like.device)
        self.writes = torch.zeros_like(self.tokens)  # in a row
        self.retracted = torch.zeros_like(self.tokens, dtype=torch.bool)  # EOS came too early: read on
        self._ask()

    def _ask(self) -> None:
        """s_i, and what it asks of the source."""
        self.s = self.decoder.query(self.tokens, self.state)
        self.queries = self.attention.queries(self.s.h)

    @property
    def read_so_far(self) -> Tensor:
        return self.memory.lengths

    def wants_to_read(self, exhausted: Tensor) -> Tensor:
        """Which sentences READ before they write?  exhausted: (B,) bool, nothing is left to read.  -> (B,) bool."""
        if not self.begun:
            return torch.ones_like(exhausted)
        self.heads = self.attention.seek(self.queries, self.memory, self.heads, self.i)
        waits = ~self.heads.ready
        reading: Tensor = must_read(self.options, self.i, waits, self.memory.lengths, self.writes, self.retracted)
        return reading & ~exhausted

    def read(self, h: Tensor, rows: Tensor) -> None:
        """rows: (R,), the sentences that read; h: (R, hidden_size), the next source state of each."""
        self.begun = True
        self.memory = self.attention.read(self.memory, h, rows)
        self.heads = self.heads.after_read(rows, self.memory.lengths)
        self.writes = self.writes.index_fill(0, rows, 0)
        self.retracted = self.retracted.index_fill(0, rows, False)

    def write(self, exhausted: Tensor) -> Optional[Step]:
        """One target token for every sentence, or None if some sentence must read on first (an EOS too early)."""
        out = self.attention.attend(self.queries, self.memory.filled().seen_by(self.heads))
        features, state = self.decoder.write(self.s, out.c, self.state)
        tokens, scores = self._choose(self.decoder.output(features).float())
        if not self.options.early_eos:
            self.retracted = tokens.eq(self.eos) & ~exhausted
            if bool(self.retracted.any()):
                return None
        self.i += 1
        self.heads = self.heads.after_write(self.memory.lengths)
        self.state, self.tokens, self.writes = state, tokens, self.writes + 1
        self._ask()
        return Step(tokens, scores, self.memory.lengths, out.beta)

    def keep(self, rows: Tensor) -> None:
        """Only these sentences go on.  rows: (B',) indices."""
        self.memory = self.memory.select(rows)
        self._keep_states(rows)

    def _keep_states(self, rows: Tensor) -> None:
        self.heads = self.heads.select(rows)
        self.state, self.s = self.state.select(rows), self.s.select(rows)
        self.queries = {name: x.index_select(0, rows) for name, x in self.queries.items()}
        self.tokens, self.writes, self.retracted = self.tokens[rows], self.writes[rows], self.retracted[rows]

    def _choose(self, logits: Tensor) -> Tuple[Tensor, Tensor]:
        """The most probable token and its log-probability: never padding, EOS neither before min_len nor after max_len.

        logits: (B, V), overwritten.  -> (B,), (B,).
        """
        total, eos = logits.logsumexp(-1), logits[:, self.eos].clone()
        logits[:, self.pad] = -inf
        logits[:, self.unk] -= self.options.unk_penalty
        if self.i <= self.options.min_len:
            logits[:, self.eos] = -inf
            best, tokens = logits.max(-1)
            return tokens, best - total
        best, tokens = logits.max(-1)
        end = too_long(self.options, self.i, self.memory.lengths)
        return tokens.masked_fill(end, self.eos), torch.where(end, eos, best) - total
