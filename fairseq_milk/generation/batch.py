"""The batched simultaneous decoder behind `fairseq-generate`.

The encoder is unidirectional, so its states of the whole source equal those of a stream.  They are computed at once,
and all READs between two target tokens are one scan over the source for the next stop of the heads.
"""

from typing import Any, List

import torch
from torch import Tensor

from .decoding import Decoding, Step, ready
from .schedule import DecodingOptions, must_read


class KnownSource(Decoding):
    """A batch of sentences with known sources.  Its decisions are those of `ArrivingSource`, which is tested.

    h: (B, J, hidden_size), lengths: (B,).
    """

    def __init__(self, model: Any, h: Tensor, lengths: Tensor, options: DecodingOptions) -> None:
        super().__init__(model, ready(model).target(h.size(0), 1), options)
        self.target.know(h, lengths)
        self.lengths, self.read_tokens = lengths, torch.zeros_like(lengths)
        self.writes, self.retracted = torch.zeros_like(lengths), torch.zeros_like(lengths, dtype=torch.bool)

    @property
    def read_so_far(self) -> Tensor:
        return self.read_tokens

    def read_on(self) -> Tensor:
        """Make all READs before target token i.  -> (B,) bool: whether the source has ended.

        READs that a knob requires come first, one token each, to which all heads move; then the schedule reads up to
        the stop of its last head.
        """
        self.read_tokens = self.read_tokens.clamp(min=1)  # every sentence reads first
        while True:
            due = must_read(self.options, self.i, False, self.read_tokens, self.writes, self.retracted)
            forced = due & (self.read_tokens < self.lengths)
            if not bool(forced.any()):
                break
            self._count(self.read_tokens + forced.long())
            self.target.send(self.read_tokens - 1, forced)
        self._count(torch.maximum(self.read_tokens, self.target.furthest()))
        return self.read_tokens >= self.lengths

    def _count(self, read: Tensor) -> None:
        """Set the number of source tokens read."""
        reading, self.read_tokens = read > self.read_tokens, read
        self.writes = self.writes.masked_fill(reading, 0)
        self.retracted = self.retracted & ~reading

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences.  rows: (B',) indices."""
        self.target.select(rows)
        self.lengths, self.read_tokens = self.lengths[rows], self.read_tokens[rows]
        self.writes, self.retracted = self.writes[rows], self.retracted[rows]


class Hypothesis:
    """The translation of one sentence."""

    def __init__(self) -> None:
        self.tokens: List[int] = []
        self.scores: List[float] = []
        self.delays: List[int] = []
        self.attention: List[List[float]] = []


@torch.no_grad()
def translate(model: Any, src_tokens: Tensor, options: DecodingOptions, attention: bool = False) -> List[Hypothesis]:
    """Translate a batch simultaneously.  src_tokens: (B, J).  attention: also return the attention of each token.

    Sentences that have written EOS leave the batch.
    """
    h, lengths = model.encoder(src_tokens)
    hypotheses = [Hypothesis() for _ in range(h.size(0))]
    batch = KnownSource(model, h, lengths, options)
    rows = torch.arange(h.size(0), device=h.device)  # indices of the sentences still in the batch
    while len(rows) > 0:
        step = batch.write(batch.read_on())
        if step is None:
            continue
        _append(hypotheses, rows, step, attention)
        going = step.tokens.ne(batch.eos).nonzero().squeeze(1)
        if len(going) < len(rows):
            rows = rows[going]
            batch.keep(going)
    return hypotheses


def _append(hypotheses: List[Hypothesis], rows: Tensor, step: Step, attention: bool) -> None:
    columns = zip(rows.tolist(), step.tokens.tolist(), step.scores.tolist(), step.delays.tolist())
    for b, (row, token, score, delay) in enumerate(columns):
        hypothesis = hypotheses[row]
        hypothesis.tokens.append(token)
        hypothesis.scores.append(score)
        hypothesis.delays.append(delay)
        if attention:
            hypothesis.attention.append(step.beta[b, :delay].tolist())
