"""The batched simultaneous decoder behind `fairseq-generate`.

The encoder is unidirectional, so its states of the whole source are those of a stream.  They are computed at once, and
all READs between two target tokens are one scan over the source for the place where the heads stop next.
"""

from dataclasses import replace
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
        self.source = self.attention.remember(h, lengths)
        self.memory = replace(self.source, lengths=torch.zeros_like(lengths))

    def read_on(self) -> Tensor:
        """Make all READs that are due before target token i.  -> (B,) bool: has the source ended?

        While a head has not stopped a READ is due whatever else is, so reading goes on to where the last of them stops.
        A READ that the schedule did not ask for (a knob did) is one token, at which all heads look next.
        """
        lengths, read = self.source.lengths, self.memory.lengths.clamp(min=1)  # everybody reads first
        while True:
            self.heads = self.attention.seek(self.queries, self.source, self.heads, self.i)
            position = self.heads.position
            furthest = position.flatten(1).amax(1) if position.dim() > 1 else position
            waits, ended = furthest >= read, read >= lengths
            reading = must_read(self.options, self.i, waits, read, self.writes, self.retracted) & ~ended
            if not bool(reading.any()):
                self.memory = replace(self.source, lengths=read)
                return ended
            after = torch.where(waits, torch.minimum(furthest + 1, lengths), read + 1)
            read = torch.where(reading, after, read)
            self.heads = self.heads.sent_to(read - 1, reading & ~waits)
            self.writes = self.writes.masked_fill(reading, 0)
            self.retracted = self.retracted & ~reading

    def keep(self, rows: Tensor) -> None:
        read = self.memory.lengths.index_select(0, rows)
        self.source = self.source.select(rows)
        self._keep_states(rows)
        self.memory = replace(self.source, lengths=read)


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
