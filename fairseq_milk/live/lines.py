"""Words from a pipe, translated while they arrive: plain text out, or a line of JSON for every READ and WRITE."""

import codecs
import json
import os
import select
import sys
import time
from typing import Callable, Iterable, Iterator, Optional, Sequence

from ..console.errors import printable
from .session import END, READ, WRITE, Piece, Session


class LineTranslation:
    """Sentences one after the other, each with a session of its own; what is decided is written at once.

    verbose: every READ and WRITE on standard error.
    """

    def __init__(self, begin: Callable[[], Session], verbose: bool = False) -> None:
        begin()  # a model that cannot translate a stream is refused before there is any input
        self.begin, self.verbose = begin, verbose
        self.session: Optional[Session] = None

    def run(self, words: Iterable[Optional[str]]) -> None:
        """words: None is the end of a line.  A last line may lack its newline."""
        for word in words:
            if word is not None:
                self.word(word)
            else:
                self.end_of_sentence()
        if self.session is not None:
            self.end_of_sentence()

    def word(self, word: str) -> None:
        """One more source word.  What comes after an early end of the translation is read in vain."""
        if self.session is None:
            self.session = self.begin()
        self.on_read(word)
        self.on_write(self.session.push(word))

    def end_of_sentence(self) -> None:
        if self.session is not None:
            self.on_read(END)
            self.on_write(self.session.end())
        self.on_end(self.session)
        self.session = None

    def on_read(self, word: str) -> None:
        self._log("READ ", word)

    def on_write(self, pieces: Sequence[Piece]) -> None:
        text = "".join(piece.text for piece in pieces)
        if text:
            self._log("WRITE", text.strip())
            emit(text)

    def on_end(self, session: Optional[Session]) -> None:
        """An empty line gives an empty line."""
        emit("\n")

    def _log(self, action: str, word: str) -> None:
        if self.verbose:
            print(action, printable(word) if sys.stderr.isatty() else word, file=sys.stderr, flush=True)


class JsonTranslation(LineTranslation):
    """Each event as a line: {"sentence": 1, "action": "READ", "text": "Hund", "time": 1.25}, with the seconds since the
    start; WRITE also has the delay in source tokens, and END the whole text with tokens, delays and latency."""

    def __init__(self, begin: Callable[[], Session], verbose: bool = False) -> None:
        super().__init__(begin, verbose)
        self.sentence, self.begun = 1, time.monotonic()

    def on_read(self, word: str) -> None:
        super().on_read(word)
        self._line(READ, word)

    def on_write(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self._log("WRITE", piece.text.strip())
            self._line(WRITE, piece.text, delay=piece.delay)

    def on_end(self, session: Optional[Session]) -> None:
        """An empty line has no tokens."""
        if session is None:
            self._line("END", "", tokens=[], delays=[], latency=None)
        else:
            translation = session.translation()
            latency = translation.latency
            figures = None if latency is None else latency._asdict()
            self._line("END", translation.text, tokens=translation.tokens, delays=translation.delays, latency=figures)
        self.sentence += 1

    def _line(self, action: str, text: str, **more: object) -> None:
        seconds = round(time.monotonic() - self.begun, 3)
        fields = {"sentence": self.sentence, "action": action, "text": text, "time": seconds, **more}
        emit(json.dumps(fields, ensure_ascii=False) + "\n")


# ---- text in and out, whether or not the pipes block ----------------------------------------------------------------


def characters(fd: int) -> Iterator[str]:
    """Text as it arrives: os.read waits for something, not for a full buffer.  Invalid UTF-8 becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    chunk = _read(fd)
    while chunk:
        yield from decoder.decode(chunk)
        chunk = _read(fd)
    yield from decoder.decode(b"", final=True)


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, 65536)
        except BlockingIOError:
            select.select([fd], [], [])


def words(characters: Iterable[str]) -> Iterator[Optional[str]]:
    """Words, and None for the end of a line.  A word has ended when something follows it."""
    word = ""
    for character in characters:
        if not character.isspace():
            word += character
            continue
        if word:
            yield word
        word = ""
        if character == "\n":
            yield None
    if word:
        yield word


def emit(text: str) -> None:
    """Write to standard output at once, all of it, even where the other end is slow and the pipe does not block."""
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file of the system
        print(text, end="", flush=True)
        return
    sys.stdout.flush()
    content = text.encode(sys.stdout.encoding or "utf-8", errors="replace")
    while content:
        try:
            content = content[os.write(fd, content) :]
        except BlockingIOError:
            select.select([], [fd], [])
