"""`fairseq-milk stream` on a terminal: an input line, the words that were sent, and the translation below.

The screen is drawn by prompt_toolkit and appears before the model is loaded; words typed meanwhile are kept.  A space
sends the word before the cursor; sent words cannot be changed and are dimmed.  Enter ends the sentence.
"""

import asyncio
import os
import queue
import re
import signal
import sys
import threading
from dataclasses import dataclass, field
from typing import Callable, List, Optional, Tuple

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.shortcuts import print_formatted_text
from prompt_toolkit.styles import Style

from ..console.errors import printable
from .lines import words
from .session import Session
from .translator import Translator

STYLE = Style.from_dict({"name": "ansicyan", "sent": "ansibrightblack underline", "target": "bold", "hint": "italic"})
HINT = "space sends a word, Enter ends the sentence, Ctrl-D leaves"
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(eq=False)
class Sentence:
    """The sent words and the translation of one sentence on the screen."""

    source: List[str] = field(default_factory=list)
    target: str = ""
    session: Optional[Session] = None


class TerminalTranslation:
    """load: loads the translator, in the background.  begin: begins a session of it."""

    def __init__(self, load: Callable[[], Translator], begin: Callable[[Translator], Session]) -> None:
        self.load, self.begin = load, begin
        self.names = ("source", "target")
        self.status = "loading the model; what you type is kept"
        self.sentences = [Sentence()]  # unfinished sentences; the last is being typed
        self.work: queue.Queue[Tuple[Optional[Sentence], Optional[str]]] = queue.Queue()
        self.worker = threading.Thread(target=self._translate, daemon=True)
        self.failure: Optional[BaseException] = None
        self.buffer = Buffer(multiline=False)
        self.application: Application[int] = Application(
            layout=self._layout(), key_bindings=self._keys(), style=STYLE, full_screen=False, erase_when_done=True
        )

    def run(self) -> int:
        """Run until the user leaves; returns the exit code.  UserError if the model cannot be loaded."""
        code: int = self.application.run(pre_run=self._start, handle_sigint=False)
        if self.failure is not None:
            raise self.failure
        if code != 0 and self.worker.is_alive():  # the thread may still be importing; its result is not needed any more
            sys.stdout.flush()
            os._exit(code)
        return code

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._exit, 128 + number)
        self.worker.start()

    def _exit(self, code: int) -> None:
        if self.application.is_running:
            self.application.exit(result=code)

    # ---- what is typed ------------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("space")(lambda event: self._insert(" "))
        keys.add("tab")(lambda event: self._insert(" "))
        keys.add("enter")(lambda event: self._end_line())
        keys.add(Keys.BracketedPaste)(lambda event: self._insert(event.data.replace("\r\n", "\n").replace("\r", "\n")))
        keys.add("c-d")(lambda event: self._end_input())
        keys.add("c-c")(lambda event: self._exit(130))
        return keys

    def _end_line(self) -> None:
        self.buffer.cursor_position = len(self.buffer.text)
        self._insert("\n")

    def _end_input(self) -> None:
        """Translate the rest, then end the command."""
        self._end_line()
        self.work.put((None, None))

    def _insert(self, text: str) -> None:
        """Insert text at the cursor and send every complete word in it."""
        rest = self.buffer.document.text_after_cursor
        text = self.buffer.document.text_before_cursor + "".join(c for c in text if c.isspace() or c.isprintable())
        unfinished = re.split(r"\s", text)[-1]
        for word in words(text[: len(text) - len(unfinished)]):
            if word is None:
                self._end_sentence()
            else:
                self._send(word)
        self.buffer.text = unfinished + rest
        self.buffer.cursor_position = len(unfinished)

    def _send(self, word: str) -> None:
        sentence = self.sentences[-1]
        sentence.source.append(word)
        self.work.put((sentence, word))

    def _end_sentence(self) -> None:
        """End the sentence, unless the line is empty."""
        if self.sentences[-1].source:
            self.work.put((self.sentences[-1], None))
            self.sentences.append(Sentence())

    # ---- translation, in a thread of its own --------------------------------------------------------------------

    def _translate(self) -> None:
        try:
            translator = self.load()
            self.begin(translator)
            self.names, self.status = translator.languages, f"ready: {translator.description}"
            self.application.invalidate()
            while True:
                sentence, word = self.work.get()
                if sentence is None:
                    break
                self._advance(translator, sentence, word)
            self._call(self._exit, 0)
        except BaseException as error:  # shown when the screen has been left
            self.failure = error
            self._call(self._exit, 2)

    def _advance(self, translator: Translator, sentence: Sentence, word: Optional[str]) -> None:
        if sentence.session is None:
            sentence.session = self.begin(translator)
        pieces = sentence.session.end() if word is None else sentence.session.push(word)
        sentence.target += printable("".join(piece.text for piece in pieces))
        if word is None:
            self._call(self._finish, sentence)
        self.application.invalidate()

    def _finish(self, sentence: Sentence) -> None:
        """Print a finished sentence above the input line, where it scrolls."""
        self.sentences.remove(sentence)
        lanes = FormattedText(self._lanes(sentence))
        run_in_terminal(lambda: print_formatted_text(lanes, style=STYLE, end=""))

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function in the thread of the screen, unless the user has left."""
        loop = self.application.loop
        if loop is not None:
            loop.call_soon_threadsafe(function, *arguments)

    # ---- the screen ---------------------------------------------------------------------------------------------

    def _layout(self) -> Layout:
        typed = BufferControl(self.buffer, input_processors=[BeforeInput(self._before_input)])
        above, below, hint = map(FormattedTextControl, (self._unfinished, self._translation, self._hint))
        windows = [Window(part, wrap_lines=True, dont_extend_height=True) for part in (above, typed, below, hint)]
        windows[1].height = Dimension(min=1)
        return Layout(HSplit(windows))

    def _before_input(self) -> FormattedText:
        """The sent words, before the input, where the cursor cannot reach them."""
        sentence = self.sentences[-1]
        return FormattedText([*self._source(sentence), ("", " " if sentence.source else "")])

    def _translation(self) -> FormattedText:
        return FormattedText(self._target(self.sentences[-1]))

    def _unfinished(self) -> FormattedText:
        """Sentences that were ended but are still being translated."""
        return FormattedText([part for sentence in self.sentences[:-1] for part in self._lanes(sentence)][:-1])

    def _hint(self) -> FormattedText:
        return FormattedText([("class:hint", f"{self.status}\n{HINT}")])

    def _lanes(self, sentence: Sentence) -> List[Tuple[str, str]]:
        end = ("", "\n")
        return [*self._source(sentence), end, *self._target(sentence), end]

    def _source(self, sentence: Sentence) -> List[Tuple[str, str]]:
        return [self._name(0), ("class:sent", " ".join(sentence.source))]

    def _target(self, sentence: Sentence) -> List[Tuple[str, str]]:
        return [self._name(1), ("class:target", sentence.target.strip())]

    def _name(self, side: int) -> Tuple[str, str]:
        return "class:name", f"{self.names[side]:>{max(map(len, self.names))}} "
