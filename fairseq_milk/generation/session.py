"""The streaming session of a model in torch."""

from typing import Any, List, Optional

import torch

from .decoding import Decoding
from .schedule import DecodingOptions, TokenSession, Written


class StreamingSession(TokenSession):
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
        self.eos = self.decoding.eos
        self.source_states: Any = None  # the encoder's, of its own kind

    @torch.no_grad()
    def push(self, token: int) -> List[Written]:
        return super().push(token)

    def read(self, token: int) -> None:
        device = self.decoding.tokens.device
        h, self.source_states = self.encoder.step(torch.tensor([token], device=device), self.source_states)
        self.decoding.read(h, torch.zeros(1, dtype=torch.long, device=device))

    def wants_to_read(self) -> bool:
        return bool(self.decoding.wants_to_read(self._exhausted()))

    def write(self) -> Optional[Written]:
        step = self.decoding.write(self._exhausted())
        return None if step is None else Written(int(step.tokens), int(step.delays), float(step.scores))

    def _exhausted(self) -> torch.Tensor:
        return torch.tensor([self.source_ended], device=self.decoding.tokens.device)
