"""A sentence that is translated while it arrives: source tokens in, target tokens out as soon as they are decided."""

from typing import Any, List, NamedTuple, Optional

import torch

from ..modules import LSTMState
from .decoding import Decoding, DecodingOptions


class Written(NamedTuple):
    """One target token and how it came about."""

    token: int
    delay: int  # source tokens read when it was written
    score: float


class StreamingSession:
    """Holds the states of encoder and decoder: a token costs the same wherever it stands, but for the attention itself.

    Its memory is what the attention can look back to: for each source token the encoder's state and a key for each
    energy of the mechanism, 4 (hidden_size + energies x energy_dim) bytes, in buffers that double when they are full.

    >>> session = StreamingSession(model)                                                         # doctest: +SKIP
    >>> for token in source: print(session.push(token))     # the last token is EOS                 # doctest: +SKIP
    """

    @torch.no_grad()
    def __init__(self, model: Any, options: Optional[DecodingOptions] = None) -> None:
        if not model.encoder.incremental:
            raise ValueError("a bidirectional encoder needs the whole source: this model cannot translate a stream")
        self.encoder = model.encoder
        self.decoding = Decoding(model, 1, options or DecodingOptions())
        self.source_states: Optional[List[LSTMState]] = None
        self.source_ended = False
        self.done = False  # EOS has been written, perhaps before the source ended

    @torch.no_grad()
    def push(self, token: int) -> List[Written]:
        """One more source token has arrived (EOS: the source has ended); what is written now, EOS included."""
        if self.source_ended:
            raise ValueError("the source of this session has ended: begin a new session")
        self.source_ended = token == self.decoding.eos
        if self.done:
            return []
        device = self.decoding.tokens.device
        h, self.source_states = self.encoder.step(torch.tensor([token], device=device), self.source_states)
        self.decoding.read(h, torch.zeros(1, dtype=torch.long, device=device))
        return self._write()

    def _write(self) -> List[Written]:
        """Write until the policy wants to read (and can)."""
        exhausted = torch.tensor([self.source_ended], device=self.decoding.tokens.device)
        written: List[Written] = []
        while not self.done and not bool(self.decoding.wants_to_read(exhausted)):
            step = self.decoding.write(exhausted)
            if step is None:
                continue
            token, delay = int(step.tokens), int(step.delays)
            written.append(Written(token, delay, float(step.scores)))
            self.done = token == self.decoding.eos
        return written
