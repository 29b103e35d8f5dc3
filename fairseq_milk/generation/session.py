"""The streaming session of a model in torch."""

from typing import Any, List, Optional

import torch
from torch import Tensor

from .decoding import Decoding, Step, ready
from .schedule import DecodingOptions, TokenSession, Written, must_read

ROOM = 16  # source tokens that there is room for at first


class ArrivingSource(Decoding):
    """One sentence whose source arrives: it is handed one source state at a time and never sees more.

    Ask `wants_to_read`, `read` if it does, and `write` if not.
    """

    def __init__(self, model: Any, options: DecodingOptions) -> None:
        super().__init__(model, ready(model).sentence(ROOM), options)
        self.read_tokens, self.writes, self.retracted = 0, 0, False
        self.row = torch.zeros_like(self.target.read_so_far)
        self.no, self.yes = self.row.bool(), ~self.row.bool()
        self.forced = False  # whether the next READ is required by a knob

    def wants_to_read(self, ended: bool) -> bool:
        """Does it READ before it writes?  ended: nothing is left to read."""
        if self.read_tokens == 0:
            return True
        due = must_read(self.options, self.i, False, self.read_tokens, self.writes, self.retracted)
        self.forced = bool(due) and not ended
        return self.forced or bool(self.target.waiting(self._flag(ended)))

    def read(self, h: Tensor) -> None:
        """h: (1, hidden_size), the next source state."""
        self.target.read(h, self.row, self._flag(self.forced))
        self.read_tokens, self.writes, self.retracted = self.read_tokens + 1, 0, False

    def write_one(self, ended: bool) -> Optional[Step]:
        return self.write(self._flag(ended))

    def _flag(self, yes: bool) -> Tensor:
        return self.yes if yes else self.no


class StreamingSession(TokenSession):
    """Holds the states of encoder and decoder, so that except for the attention a token costs the same at any position.

    It keeps what the attention can look back to: per source token the encoder's state and one key per energy of the
    mechanism, 4 (hidden_size + energies x energy_dim) bytes, in buffers that double when they are full.

    >>> session = StreamingSession(model)                                                         # doctest: +SKIP
    >>> for token in source: print(session.push(token))     # the last token is EOS                 # doctest: +SKIP
    """

    @torch.inference_mode()
    def __init__(self, model: Any, options: Optional[DecodingOptions] = None) -> None:
        if not model.encoder.incremental:
            raise ValueError("a bidirectional encoder needs the whole source: this model cannot translate a stream")
        self.encoder = model.encoder
        self.decoding = ArrivingSource(model, options or DecodingOptions())
        self.eos = self.decoding.eos
        self.source_states: Any = None  # state of the encoder

    @torch.inference_mode()
    def push(self, token: int) -> List[Written]:
        return super().push(token)

    def read(self, token: int) -> None:
        tokens = torch.tensor([token], device=self.decoding.row.device)
        h, self.source_states = self.encoder.step(tokens, self.source_states)
        self.decoding.read(h)

    def wants_to_read(self) -> bool:
        return self.decoding.wants_to_read(self.source_ended)

    def write(self) -> Optional[Written]:
        step = self.decoding.write_one(self.source_ended)
        return None if step is None else Written(int(step.tokens), int(step.delays), float(step.scores))
