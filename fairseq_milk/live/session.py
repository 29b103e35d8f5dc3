"""A session translates one sentence word by word, and records its schedule."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ..generation.schedule import TokenSession, Written
from ..text.words import SourceWords, TargetText
from .latency import Latency, latency

READ, WRITE = "READ", "WRITE"
END = "</s>"  # the text of the READ at the end of the source


class Event(NamedTuple):
    """One step of the schedule: a source word was read, or a piece of text was written."""

    action: str  # READ or WRITE
    text: str  # the source word, or END; the piece that was written, without the space in front of it
    tokens: Tuple[str, ...]  # the model's tokens for it


class Piece(NamedTuple):
    """Text that was written: one word or more, to be appended to what came before."""

    text: str  # including the space before it
    delay: int  # source tokens read when its last token was written
    words: int  # source words read, without the end of the source


class Translation(NamedTuple):
    """A translated sentence with its schedule."""

    text: str
    source: List[str]  # source tokens without EOS
    tokens: List[str]  # target tokens without EOS
    delays: List[int]  # source tokens read when each was written; one more for EOS
    schedule: List[Event]

    @property
    def latency(self) -> Optional[Latency]:
        """None if nothing was written."""
        return latency(self.delays, len(self.source) + 1) if self.delays else None


class Session:
    """Call `push` with words, then `end` once.  A session belongs to one thread; a translator can have many sessions.

    >>> session = translator.session(k=2)                               # a toy: word for word
    >>> session.push("er"), session.push("hat")
    ([], [Piece(text='he', delay=2, words=2)])
    >>> session.end()
    [Piece(text=' has', delay=3, words=2)]
    >>> [f"{event.action} {event.text}" for event in session.schedule]
    ['READ er', 'READ hat', 'WRITE he', 'READ </s>', 'WRITE has']
    """

    def __init__(self, session: TokenSession, source: SourceWords, target: TargetText) -> None:
        self.token_session, self._source, self._target = session, source, target.begin()
        self._waiting: List[str] = []  # target tokens whose text is not complete
        self.schedule: List[Event] = []
        self.source: List[str] = []
        self.written: List[Written] = []  # EOS included
        self._text: List[str] = []
        self.words = 0  # source words read

    @property
    def text(self) -> str:
        """The translation so far."""
        return "".join(self._text)

    @property
    def done(self) -> bool:
        """Whether the translation has ended, possibly before the source; further words have no effect."""
        return self.token_session.done

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        return self.token_session.source_ended

    @property
    def latency(self) -> Optional[Latency]:
        """The latency so far; None if nothing has been written."""
        return latency([one.delay for one in self.written], len(self.source) + 1) if self.written else None

    def push(self, word: str) -> List[Piece]:
        """Process one source word, or several separated by white space; returns the pieces written now."""
        return [piece for part in word.split() for piece in self._push(self.source_tokens(part))]

    def end(self) -> List[Piece]:
        """End the source; returns the rest of the translation."""
        return self._push(self.source_tokens(None))

    def source_tokens(self, word: Optional[str]) -> List[int]:
        """Record one source word (None: the end); return its tokens, which `token_session` has to read."""
        if self.ended:
            raise ValueError("the source of this session has ended: begin a new session")
        if word is None:
            self.schedule.append(Event(READ, END, (END,)))
            return [self.token_session.eos]
        tokens = self._source.tokens(word)
        symbols = self._symbols(tokens)
        self.words += 1
        self.source += symbols
        self.schedule.append(Event(READ, word, tuple(symbols)))
        return tokens

    def pieces(self, written: Sequence[Written]) -> List[Piece]:
        """Record what `token_session` has written; return its pieces of text."""
        self.written += written
        return [piece for one in written for piece in self._piece(one)]

    def translation(self) -> Translation:
        """The translation so far, with its schedule."""
        tokens = [self._symbol(written.token) for written in self.written if written.token != self.token_session.eos]
        delays = [written.delay for written in self.written]
        return Translation(self.text, list(self.source), tokens, delays, list(self.schedule))

    def _push(self, tokens: Sequence[int]) -> List[Piece]:
        return self.pieces([written for token in tokens for written in self.token_session.push(token)])

    def _piece(self, written: Written) -> List[Piece]:
        """The piece that this token completes, if any."""
        if written.token == self.token_session.eos:
            text = self._target.finish()
        else:
            self._waiting.append(self._symbol(written.token))
            text = self._target.add(written.token)
        if not text:
            return []
        self.schedule.append(Event(WRITE, text.strip(), tuple(self._waiting)))
        self._waiting = []
        self._text.append(text)
        return [Piece(text, written.delay, self.words)]

    def _symbol(self, token: int) -> str:
        symbol: str = self._target.dictionary[token]
        return symbol

    def _symbols(self, tokens: Sequence[int]) -> List[str]:
        dictionary: Any = self._source.dictionary
        return [dictionary[token] for token in tokens]
