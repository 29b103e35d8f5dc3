"""Greedy simultaneous decoding by the rules of `schedule`, token by token.

`batch.KnownSource` decodes for `fairseq-generate`, `session.ArrivingSource` for a streaming session.
"""

from math import inf
from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from ..models.target import Target
from .schedule import DecodingOptions, too_long


class Step(NamedTuple):
    """One target token for every sentence of the batch."""

    tokens: Tensor  # (B,)
    scores: Tensor  # (B,), log-probabilities
    delays: Tensor  # (B,), g_i
    beta: Tensor  # (B, J'), attention, over the tokens that any sentence has read


def ready(model: Any) -> Any:
    """The model; raises if it is not in evaluation mode."""
    if model.training:
        raise ValueError("a model decodes in evaluation mode, without dropout: call model.eval() first")
    return model


class Decoding:
    """A batch of sentences that are translated in step: all write target token i next, each with its own heads.

    Subclasses implement reading; `write` is called when no sentence wants to read.
    """

    writes: Any  # consecutive WRITEs: (B,), or a number for one sentence
    retracted: Any  # EOS came too early: READ first; the same

    def __init__(self, model: Any, target: Target, options: DecodingOptions) -> None:
        self.output, self.options = model.decoder.output, options
        dictionary = model.decoder.dictionary
        self.pad, self.eos, self.unk = dictionary.pad(), dictionary.eos(), dictionary.unk()
        self.target = target
        self.target.ask(torch.full_like(target.read_so_far, self.eos))

    @property
    def i(self) -> int:
        """The number of the next target token, from 1."""
        return self.target.i

    @property
    def read_so_far(self) -> Tensor:
        return self.target.read_so_far

    def write(self, exhausted: Tensor) -> Optional[Step]:
        """One target token per sentence, or None if a sentence must READ first (EOS came too early).

        exhausted: (B,) bool, the source has ended.
        """
        features, beta = self.target.write()
        tokens, scores = self._choose(self.output.one_step(features).float())
        if not self.options.early_eos:
            self.retracted = tokens.eq(self.eos) & ~exhausted
            if bool(self.retracted.any()):
                return None
        self.target.accept()
        self.writes = self.writes + 1
        self.target.ask(tokens)
        return Step(tokens, scores, self.read_so_far, beta)

    def _choose(self, logits: Tensor) -> Tuple[Tensor, Tensor]:
        """The most probable token and its log-probability: never padding; EOS between min_len and max_len.

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
