"""Greedy simultaneous decoding by the rules of `schedule`: the state of a batch, and how it grows token by token.

A `Decoding` is handed one source state at a time and never sees more than has been read.  The streaming session is one
of a single sentence; `batch` has the one of `fairseq-generate`, which knows the whole source.
"""

from math import inf
from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from ..models.target import Target
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
        self.output, self.options = model.decoder.output, options
        dictionary = model.decoder.dictionary
        self.pad, self.eos, self.unk = dictionary.pad(), dictionary.eos(), dictionary.unk()
        self.begun = False  # everybody reads first
        self.target: Target = model.target(batch, room)
        self.tokens = torch.full_like(self.target.read_so_far, self.eos)
        self.writes = torch.zeros_like(self.tokens)  # in a row
        self.retracted = torch.zeros_like(self.tokens, dtype=torch.bool)  # EOS came too early: read on
        self.forced = torch.zeros_like(self.retracted)  # the READ that is due is a knob's, not the schedule's
        self.target.ask(self.tokens)

    @property
    def i(self) -> int:
        """The target token that is about to be written, from 1."""
        return self.target.i

    @property
    def read_so_far(self) -> Tensor:
        return self.target.read_so_far

    def wants_to_read(self, exhausted: Tensor) -> Tensor:
        """Which sentences READ before they write?  exhausted: (B,) bool, nothing is left to read.  -> (B,) bool."""
        if not self.begun:
            return torch.ones_like(exhausted)
        due = must_read(self.options, self.i, False, self.read_so_far, self.writes, self.retracted)
        self.forced = due & ~exhausted
        return self.forced if bool(self.forced.any()) else self.target.waiting(exhausted)

    def read(self, h: Tensor, rows: Tensor) -> None:
        """rows: (R,), the sentences that read; h: (R, hidden_size), the next source state of each."""
        self.begun = True
        self.target.read(h, rows, self.forced)
        self.writes = self.writes.index_fill(0, rows, 0)
        self.retracted = self.retracted.index_fill(0, rows, False)

    def write(self, exhausted: Tensor) -> Optional[Step]:
        """One target token for every sentence, or None if some sentence must read on first (an EOS too early)."""
        features, beta = self.target.write()
        tokens, scores = self._choose(self.output(features).float())
        if not self.options.early_eos:
            self.retracted = tokens.eq(self.eos) & ~exhausted
            if bool(self.retracted.any()):
                return None
        self.target.accept()
        self.tokens, self.writes = tokens, self.writes + 1
        self.target.ask(tokens)
        return Step(tokens, scores, self.read_so_far, beta)

    def keep(self, rows: Tensor) -> None:
        """Only these sentences go on.  rows: (B',) indices."""
        self.target.select(rows)
        self.tokens, self.writes, self.retracted = self.tokens[rows], self.writes[rows], self.retracted[rows]
        self.forced = self.forced[rows]

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
        end = too_long(self.options, self.i, self.read_so_far)
        return tokens.masked_fill(end, self.eos), torch.where(end, eos, best) - total
