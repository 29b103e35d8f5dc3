"""READ or WRITE: the rules that every way of decoding follows, and the loop of a live sentence.

Nothing here needs torch.  The rules use operators that numbers, numpy arrays and torch tensors share, so the batched
generator, the streaming session and the exported model run the same code.
"""

from abc import ABC, abstractmethod
from typing import Any, List, NamedTuple, Optional


class DecodingOptions(NamedTuple):
    """The knobs of decoding that need no training."""

    min_wait: int = 1  # source tokens read before the first target token
    max_writes: int = 0  # target tokens in a row without a READ while there is something to read; 0: any number
    early_eos: bool = True  # may EOS be written before the whole source has been read?
    max_len_a: float = 2.0  # EOS at the latest after max_len_a * |x| + max_len_b target tokens
    max_len_b: int = 200
    min_len: int = 1  # target tokens before EOS
    unk_penalty: float = 0.0


def must_read(options: DecodingOptions, i: int, waits: Any, read: Any, writes: Any, retracted: Any) -> Any:
    """Is a READ due before target token i is written, if there is anything left to read?

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
    """Is target token i beyond what max_len allows for the source tokens read?"""
    return i > options.max_len_a * read + options.max_len_b


class Written(NamedTuple):
    """One target token and how it came about."""

    token: int
    delay: int  # source tokens read when it was written
    score: float


class TokenSession(ABC):
    """A sentence that is translated while it arrives: source tokens in, target tokens out as soon as they are decided.

    A subclass holds the model's states and answers for the sentence under translation.
    """

    eos: int
    source_ended = False
    done = False  # EOS has been written, perhaps before the source ended

    def push(self, token: int) -> List[Written]:
        """One more source token has arrived (EOS: the source has ended); what is written now, EOS included."""
        if self.source_ended:
            raise ValueError("the source of this session has ended: begin a new session")
        self.source_ended = token == self.eos
        if self.done:
            return []
        self.read(token)
        written: List[Written] = []
        while not self.done and not self.wants_to_read():
            step = self.write()
            if step is not None:
                written.append(step)
                self.done = step.token == self.eos
        return written

    @abstractmethod
    def read(self, token: int) -> None:
        """READ: encode one more source token."""

    @abstractmethod
    def wants_to_read(self) -> bool:
        """Does the policy READ before it writes the next token?  Never at the end of the source."""

    @abstractmethod
    def write(self) -> Optional[Written]:
        """WRITE the next target token, or None if the policy has to READ first (an EOS too early)."""
