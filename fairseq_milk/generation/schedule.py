"""The READ/WRITE rules of all decoders, and the loop of a streaming session.

Nothing here needs torch.  The rules use operators that numbers, numpy arrays and torch tensors share, so the batched
generator, the streaming session and the exported model run the same code.
"""

from abc import ABC, abstractmethod
from typing import Any, Hashable, List, NamedTuple, Optional, Sequence


class DecodingOptions(NamedTuple):
    """The options of decoding."""

    min_wait: int = 1  # source tokens read before the first target token
    max_writes: int = 0  # target tokens in a row without a READ while there is something to read; 0: any number
    early_eos: bool = True  # whether EOS may be written before the whole source has been read
    max_len_a: float = 2.0  # EOS at the latest after max_len_a * |x| + max_len_b target tokens
    max_len_b: int = 200
    min_len: int = 1  # target tokens before EOS
    unk_penalty: float = 0.0


def must_read(options: DecodingOptions, i: int, waits: Any, read: Any, writes: Any, retracted: Any) -> Any:
    """Whether a READ must come before target token i, if there is anything left to read.

    waits: the mechanism does not stop here; read: source tokens read; writes: target tokens since the last READ;
    retracted: EOS would have been written too early.  Each a number or bool, or an array with one per sentence.
    """
    reading = waits | retracted
    if i == 1:
        reading = reading | (read < options.min_wait)
    if options.max_writes > 0:
        reading = reading | (writes >= options.max_writes)
    return reading | too_long(options, i, read)


def too_long(options: DecodingOptions, i: int, read: Any) -> Any:
    """Whether target token i exceeds the length limit for the source tokens read."""
    return i > options.max_len_a * read + options.max_len_b


class Written(NamedTuple):
    """One target token with its score and delay."""

    token: int
    delay: int  # source tokens read when it was written
    score: float


class Turn(NamedTuple):
    """What a session did in its turn.  more: it has more to write, in another turn without a source token."""

    written: List[Written]
    more: bool


class TokenSession(ABC):
    """Translates a sentence as it arrives: takes source tokens and returns target tokens as soon as they are decided.

    A subclass holds the states of the model.
    """

    eos: int
    source_ended = False
    done = False  # whether EOS has been written, possibly before the source ended

    def push(self, token: int) -> List[Written]:
        """Process one more source token (EOS ends the source); returns the target tokens written now, including EOS."""
        if self.arrives(token):
            self.read(token)
        written: List[Written] = []
        while self.wants_to_write():
            written += self.note(self.write())
        return written

    def arrives(self, token: int) -> bool:
        """Register a source token; False if the translation has already ended."""
        if self.source_ended:
            raise ValueError("the source of this session has ended: begin a new session")
        self.source_ended = token == self.eos
        return not self.done

    def wants_to_write(self) -> bool:
        return not self.done and not self.wants_to_read()

    def note(self, step: Optional[Written]) -> List[Written]:
        """What `write` gave as a list.  EOS ends the translation."""
        if step is None:
            return []
        self.done = step.token == self.eos
        return [step]

    @property
    def batch(self) -> Hashable:
        """Sessions with the same value may take their turn together."""
        return id(self)

    @classmethod
    def turns(cls, sessions: Sequence[Any], tokens: Sequence[Optional[int]]) -> List[Turn]:
        """One turn of each session: one more source token, or None to go on writing.

        Here runs the sessions one by one, each until it has to read.
        """
        return [Turn([] if token is None else one.push(token), False) for one, token in zip(sessions, tokens)]

    @abstractmethod
    def read(self, token: int) -> None:
        """READ: encode one more source token."""

    @abstractmethod
    def wants_to_read(self) -> bool:
        """Whether the policy READs before it writes the next token; never at the end of the source."""

    @abstractmethod
    def write(self) -> Optional[Written]:
        """WRITE: the next target token, or None if the policy has to READ first (EOS came too early)."""
