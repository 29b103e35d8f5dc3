"""fairseq-milk stream: words from standard input, translated while they arrive."""

import argparse
import codecs
import contextlib
import os
import sys
from typing import Callable, Iterable, Iterator, Optional, Sequence

from ..console.errors import UserError, printable
from ..host.command_line import only_warnings
from ..live import Piece, Session, TextOptions, load
from ..live.knobs import add_knob_arguments, knob_arguments, refuse_other_knobs

BACKSPACE, END_OF_INPUT = ("\x7f", "\b"), "\x04"  # of a terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="checkpoint of fairseq-train, or folder of fairseq-milk export")
    parser.add_argument("--data", metavar="DIR", help="for a checkpoint: directory of fairseq-preprocess")
    add_text_arguments(parser)
    add_knob_arguments(parser)
    parser.add_argument("--device", default="cpu", help="for a checkpoint: where torch computes, e.g. cuda (cpu)")
    parser.add_argument("--verbose", action="store_true", help="show every READ and WRITE on standard error")


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bpe-codes", metavar="FILE", help="of subword-nmt (default: the *codes* file in DIR)")
    parser.add_argument("--tokenizer", choices=["moses"], help="of the text that the model was trained on")
    parser.add_argument("--moses-no-dash-splits", action="store_true", help="do not split words at dashes")
    parser.add_argument("--moses-no-escape", action="store_true", help="do not escape quotes and the like")


def run(args: argparse.Namespace) -> int:
    only_warnings()
    knobs = knob_arguments(args)
    if sys.stdin is None:
        raise UserError("standard input is closed")
    text = TextOptions(args.bpe_codes, args.tokenizer, args.moses_no_dash_splits, args.moses_no_escape)
    translator = load(args.model, args.data, text, args.device)
    refuse_other_knobs(knobs, translator.knobs)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    live = LiveTranslation(lambda: translator.session(**knobs), args.verbose, terminal)
    fd = sys.stdin.fileno()
    with unbuffered_terminal(fd) if terminal else contextlib.nullcontext():
        for word in words(typed(fd) if terminal else characters(fd), typing=terminal):
            live.word(word) if word is not None else live.end_of_sentence()
        live.end_of_input()
    return 0


class LiveTranslation:
    """Sentences one after the other, each with a session of its own; what is decided is shown at once.

    terminal: source and target share the screen, so the target is shown bold.
    """

    def __init__(self, begin: Callable[[], Session], verbose: bool, terminal: bool) -> None:
        begin()  # a model that cannot translate a stream is refused before there is any input
        self.begin, self.verbose, self.terminal = begin, verbose, terminal
        self.session: Optional[Session] = None

    def word(self, word: str) -> None:
        """One more source word.  What comes after an early end of the translation is read in vain."""
        if self.session is None:
            self.session = self.begin()
        self._log("READ ", word)
        self._write(self.session.push(word))

    def end_of_sentence(self) -> None:
        """An empty line gives an empty line."""
        if self.session is not None:
            self._log("READ ", "</s>")
            self._write(self.session.end())
            self.session = None
        print(flush=True)

    def end_of_input(self) -> None:
        """A last line may lack its newline."""
        if self.session is not None:
            self.end_of_sentence()

    def _write(self, pieces: Sequence[Piece]) -> None:
        text = "".join(piece.text for piece in pieces)
        if text:
            self._log("WRITE", text.strip())
            print(f"\033[1m{printable(text.strip())}\033[0m " if self.terminal else text, end="", flush=True)

    def _log(self, action: str, word: str) -> None:
        if self.verbose:
            print(action, printable(word) if sys.stderr.isatty() else word, file=sys.stderr, flush=True)


def characters(fd: int) -> Iterator[str]:
    """Text as it arrives: os.read waits for something, not for a full buffer.  Invalid UTF-8 becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    chunk = os.read(fd, 65536)
    while chunk:
        yield from decoder.decode(chunk)
        chunk = os.read(fd, 65536)
    yield from decoder.decode(b"", final=True)


def words(characters: Iterable[str], typing: bool = False) -> Iterator[Optional[str]]:
    """Words, and None for the end of a line.  A word has ended when something follows it.

    typing: a person may take back a letter; in a file a backspace is a character like others.
    """
    word = ""
    for character in characters:
        if typing and character in BACKSPACE:
            word = word[:-1]
        elif not character.isspace():
            word += character
        else:
            if word:
                yield word
            word = ""
            if character == "\n":
                yield None
    if word:
        yield word


def typed(fd: int) -> Iterator[str]:
    """The characters that a person types, echoed here since the terminal no longer does it.  Ctrl-D ends them."""
    for character in characters(fd):
        if character == END_OF_INPUT:
            return
        print("\b \b" if character in BACKSPACE else character, end="", flush=True)
        yield character


@contextlib.contextmanager
def unbuffered_terminal(fd: int) -> Iterator[None]:
    """The terminal hands over every key at once instead of every line."""
    import termios
    import tty

    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
