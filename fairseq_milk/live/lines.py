"""Translates words from a pipe as they arrive, to plain text or to one line of JSON per READ and WRITE."""

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
    """Translates one sentence after the other, each in a new session; output is written immediately.

    verbose: show every READ and WRITE on standard error.
    """

    def __init__(self, begin: Callable[[], Session], verbose: bool = False) -> None:
        begin()  # raises if the model cannot stream, before any input is read
        self.begin, self.verbose = begin, verbose
        self.session: Optional[Session] = None

    def run(self, words: Iterable[Optional[str]]) -> None:
        """Translate the words; None ends a line.  The last line may have no newline."""
        for word in words:
            if word is not None:
                self.word(word)
            else:
                self.end_of_sentence()
        if self.session is not None:
            self.end_of_sentence()

    def word(self, word: str) -> None:
        """Process one source word.  Words after an early end of the translation are read but not used."""
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
            emit(shown(text))

    def on_end(self, session: Optional[Session]) -> None:
        """End the line; an empty line gives an empty line."""
        emit("\n")

    def _log(self, action: str, word: str) -> None:
        if self.verbose:
            print(action, printable(word) if sys.stderr.isatty() else word, file=sys.stderr, flush=True)


class JsonTranslation(LineTranslation):
    """Writes each event as a line: {"sentence": 1, "action": "READ", "text": "Hund", "time": 1.25}.

    time: seconds since the start.  WRITE also has the delay in source tokens, and END the whole text with its tokens,
    delays and latency.
    """

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
        """End the line; an empty line has no tokens."""
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
        emit(shown(json.dumps(fields, ensure_ascii=False)) + "\n")


# ---- text in and out, whether or not the pipes block ----------------------------------------------------------------


def characters(fd: int) -> Iterator[str]:
    """The text as it arrives: os.read does not wait for a full buffer.  Invalid UTF-8 becomes U+FFFD."""
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
    """The words, and None for the end of a line.  A word ends when white space follows it."""
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


def shown(text: str) -> str:
    """The text as it may go to standard output: a word of a dictionary cannot control the terminal."""
    return printable(text) if sys.stdout.isatty() else text


def emit(text: str) -> None:
    """Write all of the text to standard output immediately, also to a slow non-blocking pipe."""
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError):  # no file descriptor
        print(text, end="", flush=True)
        return
    sys.stdout.flush()
    content = text.encode(sys.stdout.encoding or "utf-8", errors="replace")
    while content:
        try:
            content = content[os.write(fd, content) :]
        except BlockingIOError:
            select.select([], [fd], [])
