"""The batched simultaneous decoder behind `fairseq-generate`.

The encoder is unidirectional, so its states of the whole source are those of a stream.  They are computed at once, and
all READs between two target tokens are one scan over the source for the place where the heads stop next.
"""

from typing import Any, List

import torch
from torch import Tensor

from .decoding import Decoding, Step
from .schedule import DecodingOptions, must_read


class KnownSource(Decoding):
    """A batch of sentences whose sources are known.  It decides as `Decoding` does, against which it is tested.

    h: (B, J, hidden_size), lengths: (B,).
    """

    def __init__(self, model: Any, h: Tensor, lengths: Tensor, options: DecodingOptions) -> None:
        super().__init__(model, h.size(0), options, room=1)
        self.target.know(h, lengths)
        self.lengths, self.read_tokens = lengths, torch.zeros_like(lengths)

    @property
    def read_so_far(self) -> Tensor:
        return self.read_tokens

    def read_on(self) -> Tensor:
        """Make all READs that are due before target token i.  -> (B,) bool: has the source ended?

        READs that a knob asks for come first, one token each, at which all heads look next; then the schedule reads to
        where the last of its heads stops.
        """
        self.read_tokens = self.read_tokens.clamp(min=1)  # everybody reads first
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
        """So many source tokens have been read now."""
        reading, self.read_tokens = read > self.read_tokens, read
        self.writes = self.writes.masked_fill(reading, 0)
        self.retracted = self.retracted & ~reading

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self.lengths, self.read_tokens = self.lengths[rows], self.read_tokens[rows]


class Hypothesis:
    """What has been written of one sentence."""

    def __init__(self) -> None:
        self.tokens: List[int] = []
        self.scores: List[float] = []
        self.delays: List[int] = []
        self.attention: List[List[float]] = []


@torch.no_grad()
def translate(model: Any, src_tokens: Tensor, options: DecodingOptions, attention: bool = False) -> List[Hypothesis]:
    """Translate a batch simultaneously.  src_tokens: (B, J).  attention: keep what each token looked at.

    Sentences that have written EOS leave the batch.
    """
    h, lengths = model.encoder(src_tokens)
    hypotheses = [Hypothesis() for _ in range(h.size(0))]
    batch = KnownSource(model, h, lengths, options)
    rows = torch.arange(h.size(0), device=h.device)  # sentences still in the batch
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
