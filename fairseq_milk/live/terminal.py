"""`fairseq-milk stream` on a terminal: an input line, the words that were sent, and the translation below.

The screen is drawn by prompt_toolkit and appears before the model is loaded; words typed meanwhile are kept.  A space
sends the word before the cursor; sent words cannot be changed and are dimmed.  Enter ends the sentence.
"""

import asyncio
import os
import queue
import signal
import sys
import threading
from typing import Callable, List, Optional, Tuple

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.shortcuts import print_formatted_text
from prompt_toolkit.styles import Style

from ..console.errors import printable
from .session import Session
from .translator import Translator

STYLE = Style.from_dict({"name": "ansicyan", "sent": "ansibrightblack underline", "target": "bold", "hint": "italic"})
HINT = "space sends a word, Enter ends the sentence, Ctrl-D leaves"
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Sentence:
    """The sent words and the translation of one sentence on the screen."""

    def __init__(self) -> None:
        self.source: List[str] = []
        self.target = ""
        self.session: Optional[Session] = None


class TerminalTranslation:
    """load: loads the translator, in the background.  begin: begins a session of it."""

    def __init__(self, load: Callable[[], Translator], begin: Callable[[Translator], Session]) -> None:
        self.load, self.begin = load, begin
        self.names = ("source", "target")
        self.status = "loading the model; what you type is kept"
        self.sentences = [Sentence()]  # unfinished sentences; the last is being typed
        self.work: queue.Queue[Tuple[Optional[Sentence], Optional[str]]] = queue.Queue()
        self.failure: Optional[BaseException] = None
        self.buffer = Buffer(multiline=False)
        self.application: Application[int] = Application(
            layout=self._layout(), key_bindings=self._keys(), style=STYLE, full_screen=False, erase_when_done=True
        )

    def run(self) -> int:
        """Run until the user leaves; returns the exit code.  UserError if the model cannot be loaded."""
        worker = threading.Thread(target=self._translate, daemon=True)
        worker.start()
        code: int = self.application.run(pre_run=self._watch_signals, handle_sigint=False)
        if self.failure is not None:
            raise self.failure
        if code != 0 and worker.is_alive():  # the thread may still be importing; its result is not needed any more
            sys.stdout.flush()
            os._exit(code)
        return code

    # ---- what is typed ------------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("space")(self._on_space)
        keys.add("enter")(self._on_enter)
        keys.add(Keys.BracketedPaste)(self._on_paste)
        keys.add("c-d")(self._on_end_of_input)
        keys.add("c-c")(lambda event: event.app.exit(result=130))
        keys.add("tab")(self._on_space)
        return keys

    def _on_space(self, event: KeyPressEvent) -> None:
        self._insert(" ")

    def _on_paste(self, event: KeyPressEvent) -> None:
        self._insert(event.data.replace("\r\n", "\n").replace("\r", "\n"))

    def _on_enter(self, event: KeyPressEvent) -> None:
        self.buffer.cursor_position = len(self.buffer.text)
        self._insert("\n")

    def _on_end_of_input(self, event: KeyPressEvent) -> None:
        """Translate the rest, then end the command."""
        self.buffer.cursor_position = len(self.buffer.text)
        if self.buffer.text or self.sentences[-1].source:
            self._insert("\n")
        self.work.put((None, None))

    def _insert(self, text: str) -> None:
        """Insert text at the cursor and send every complete word in it."""
        document = self.buffer.document
        word, rest = document.text_before_cursor, document.text_after_cursor
        for character in text:
            if not character.isspace():
                word += character if character.isprintable() else ""
                continue
            if word:
                self._send(word)
            word = ""
            if character == "\n":
                self._end_sentence()
        self.buffer.text = word + rest
        self.buffer.cursor_position = len(word)

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
            self._exit(0)
        except BaseException as error:  # shown when the screen has been left
            self.failure = error
            self._exit(2)

    def _advance(self, translator: Translator, sentence: Sentence, word: Optional[str]) -> None:
        if sentence.session is None:
            sentence.session = self.begin(translator)
        pieces = sentence.session.end() if word is None else sentence.session.push(word)
        sentence.target += printable("".join(piece.text for piece in pieces))
        if word is None:
            self._call(lambda: self._finish(sentence))
        self.application.invalidate()

    def _finish(self, sentence: Sentence) -> None:
        """Print a finished sentence above the input line, where it scrolls."""
        self.sentences.remove(sentence)
        width = max(map(len, self.names))
        lanes = (("sent", " ".join(sentence.source)), ("target", sentence.target.strip()))
        lines: List[Tuple[str, str]] = []
        for name, (style, text) in zip(self.names, lanes):
            lines += [("class:name", f"{name:>{width}} "), (f"class:{style}", text), ("", "\n")]
        run_in_terminal(lambda: print_formatted_text(FormattedText(lines), style=STYLE, end=""))

    def _exit(self, code: int) -> None:
        self._call(lambda: self.application.is_running and self.application.exit(result=code))

    def _call(self, action: Callable[[], object]) -> None:
        """Call a function in the thread of the screen, as soon as it runs."""
        while self.application.loop is None:
            if not threading.main_thread().is_alive():
                return
            threading.Event().wait(0.01)
        self.application.loop.call_soon_threadsafe(action)

    # ---- the screen ---------------------------------------------------------------------------------------------

    def _layout(self) -> Layout:
        typed = BufferControl(self.buffer, input_processors=[BeforeInput(self._before_input)])
        return Layout(
            HSplit(
                [
                    Window(FormattedTextControl(self._unfinished), wrap_lines=True, dont_extend_height=True),
                    Window(typed, wrap_lines=True, dont_extend_height=True, height=Dimension(min=1)),
                    Window(FormattedTextControl(self._target_lane), wrap_lines=True, dont_extend_height=True),
                    Window(FormattedTextControl(self._hint), wrap_lines=True, dont_extend_height=True),
                ]
            )
        )

    def _name(self, side: int) -> Tuple[str, str]:
        return "class:name", f"{self.names[side]:>{max(map(len, self.names))}} "

    def _before_input(self) -> FormattedText:
        """The sent words, before the input, where the cursor cannot reach them."""
        sent = " ".join(self.sentences[-1].source)
        return FormattedText([self._name(0), ("class:sent", sent), ("", " " if sent else "")])

    def _target_lane(self) -> FormattedText:
        return FormattedText([self._name(1), ("class:target", self.sentences[-1].target.strip())])

    def _unfinished(self) -> FormattedText:
        """Sentences that were ended but are still being translated."""
        lines: List[Tuple[str, str]] = []
        for sentence in self.sentences[:-1]:
            lines += [self._name(0), ("class:sent", " ".join(sentence.source)), ("", "\n")]
            lines += [self._name(1), ("class:target", sentence.target.strip()), ("", "\n")]
        return FormattedText(lines[:-1])

    def _hint(self) -> FormattedText:
        return FormattedText([("class:hint", f"{self.status}\n{HINT}")])

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._leave, 128 + number)

    def _leave(self, code: int) -> None:
        if self.application.is_running:
            self.application.exit(result=code)
