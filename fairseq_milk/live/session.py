"""One sentence: words in as they arrive, text out as soon as it is decided, and the schedule of both."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ..generation.schedule import TokenSession, Written
from ..text.words import SourceWords, TargetText
from .latency import Latency, latency

READ, WRITE = "READ", "WRITE"
END = "</s>"  # the text of the READ that finds the end of the source


class Event(NamedTuple):
    """One step of the schedule: a source word was read, or a piece of text was written."""

    action: str  # READ or WRITE
    text: str  # the source word, or END; the piece that was written, without the space in front of it
    tokens: Tuple[str, ...]  # the model's tokens for it


class Piece(NamedTuple):
    """Text that was written: one word or more, to be appended to what came before."""

    text: str  # with the space in front of it
    delay: int  # source tokens read when its last token was written
    words: int  # source words read, the end of the source not counted


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
    """Push words, then `end` once.  A session belongs to one thread; a translator may have many at once.

    >>> session = translator.session(k=2)                               # a toy: word for word
    >>> session.push("er"), session.push("hat")
    ([], [Piece(text='he', delay=2, words=2)])
    >>> session.end()
    [Piece(text=' has', delay=3, words=2)]
    >>> [f"{event.action} {event.text}" for event in session.schedule]
    ['READ er', 'READ hat', 'WRITE he', 'READ </s>', 'WRITE has']
    """

    def __init__(self, session: TokenSession, source: SourceWords, target: TargetText) -> None:
        self._session, self._source, self._target = session, source, target.begin()
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
        """The translation has ended, perhaps before the source: what is pushed now changes nothing."""
        return self._session.done

    @property
    def ended(self) -> bool:
        """`end` was called."""
        return self._session.source_ended

    def push(self, word: str) -> List[Piece]:
        """One more source word has arrived; the pieces that are written now.  White space separates several words."""
        pieces: List[Piece] = []
        for part in word.split():
            tokens = self._source.tokens(part)
            self.words += 1
            self.source += self._symbols(tokens)
            self.schedule.append(Event(READ, part, tuple(self._symbols(tokens))))
            pieces += self._push(tokens)
        return pieces

    def end(self) -> List[Piece]:
        """The source has ended; the rest of the translation."""
        self.schedule.append(Event(READ, END, (END,)))
        return self._push([self._session.eos])

    def translation(self) -> Translation:
        """What has been written so far."""
        tokens = [self._symbol(written.token) for written in self.written if written.token != self._session.eos]
        delays = [written.delay for written in self.written]
        return Translation(self.text, list(self.source), tokens, delays, list(self.schedule))

    def _push(self, tokens: Sequence[int]) -> List[Piece]:
        pieces: List[Piece] = []
        for token in tokens:
            for written in self._session.push(token):
                self.written.append(written)
                pieces += self._piece(written)
        return pieces

    def _piece(self, written: Written) -> List[Piece]:
        """The text that this token completes, if any."""
        if written.token == self._session.eos:
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
