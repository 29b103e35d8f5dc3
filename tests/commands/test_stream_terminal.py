"""`fairseq-milk stream` on a terminal, as a person sees it: keys go in, the screen of an emulated terminal is read."""

import signal
import sys
from typing import Any, List

import pytest

from tests.support.fairseq_commands import ROOT, environment
from tests.support.terminals import Terminal, terminal
from tests.support.tiny_translators import Plain

PROGRAM = """
import sys, time
from tests.support.stand_in_translators import stand_in
from fairseq_milk.live.terminal import TerminalTranslation
def load():
    time.sleep(float(sys.argv[1]))
    return stand_in("waitk")
sys.exit(TerminalTranslation(load, lambda translator: translator.session()).run())
"""
LEFT, RIGHT, BACKSPACE, CTRL_C, CTRL_D = "\x1b[D", "\x1b[C", "\x7f", "\x03", "\x04"
PASTE = "\x1b[200~{}\x1b[201~"


def stand_in(seconds: float = 0.0) -> Any:
    """The screen with a toy model, which takes some seconds to load."""
    return terminal([sys.executable, "-c", PROGRAM, str(seconds)], cwd=ROOT, env=environment(TERM="xterm"))


def has(*wanted: str) -> Any:
    return lambda lines: all(any(one in line for line in lines) for one in wanted)


def lane(lines: List[str], name: str) -> str:
    """The last line of a language on the screen."""
    return next(line for line in reversed(lines) if f"{line} ".startswith(f"{name} "))[len(name) + 1 :]


def test_what_is_typed_while_it_loads_is_kept() -> None:
    with stand_in(2.0) as screen:
        screen.until(has("loading"))
        screen.type("er hat das ")
        assert not has("ready:")(screen.lines)
        screen.until(has("ready:", "en he"))
        assert lane(screen.lines, "de") == "er hat das"


def test_source_and_target_have_lanes_of_their_own() -> None:
    with stand_in() as screen:
        screen.until(has("ready:"))
        screen.type("er hat das ")
        screen.until(has("en he"))
        screen.type("buch")
        lines = screen.until(has("de er hat das buch"))
        assert lane(lines, "en") == "he"  # a word that is not finished was not sent
        screen.type("\r")
        lines = screen.until(lambda lines: has("en he has the book")(lines) and lane(lines, "de") == "")
        assert lines[0] == "de er hat das buch" and lines[1] == "en he has the book"  # it stays, and a new one begins
        assert lane(lines, "de") == lane(lines, "en") == ""


def test_only_the_word_that_was_not_sent_can_be_edited() -> None:
    with stand_in() as screen:
        screen.until(has("ready:"))
        screen.type("er hat bux")
        screen.until(has("de er hat bux"))
        screen.type(BACKSPACE + "h" + LEFT + "c" + RIGHT)
        screen.until(has("de er hat buch"))
        screen.type(BACKSPACE * 30 + LEFT * 30)
        screen.until(lambda lines: lane(lines, "de") == "er hat")
        row = next(row for row, line in enumerate(screen.screen.display) if line.startswith("de er hat"))
        shown = screen.screen.buffer[row]
        assert all(shown[column].underscore for column in range(3, 5))  # "er" was sent, and looks so
        screen.type("das ")
        lines = screen.until(has("en he"))
        assert lane(lines, "de") == "er hat das"


def test_paste_and_resize() -> None:
    with stand_in() as screen:
        screen.until(has("ready:"))
        screen.type(PASTE.format("er hat das\nsie und er"))
        lines = screen.until(has("en he has the", "de sie und er"))
        assert lane(lines, "de") == "sie und er"
        screen.resize(30, 14)
        screen.type(" ")
        screen.until(has("en she"))
        assert lane(screen.lines, "de") == "sie und er"


@pytest.mark.parametrize("how, code", [(CTRL_C, 130), (CTRL_D, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_it_ends_and_leaves_the_terminal_as_it_was(how: Any, code: int) -> None:
    with stand_in() as screen:
        screen.until(has("ready:"))
        assert screen.settings() != screen.before
        screen.type("er hat das buch")
        screen.until(has("en he"))
        screen.type(how) if isinstance(how, str) else screen.process.send_signal(how)
        assert screen.wait() == code
        assert screen.settings() == screen.before and not screen.screen.cursor.hidden
        if how == CTRL_D:
            assert has("en he has the book")(screen.lines)  # what was typed is translated first
        assert b"Traceback" not in errors(screen)


def test_it_can_be_left_while_it_loads() -> None:
    with stand_in(100.0) as screen:
        screen.until(has("loading"))
        screen.type(CTRL_C)
        assert screen.wait() == 130 and screen.settings() == screen.before


def test_a_person_types(plain: Plain) -> None:
    """The command itself with a checkpoint; a model that cannot be loaded is reported in one sentence."""
    command = [sys.executable, "-c", "import sys; from fairseq_milk.cli import main; sys.exit(main())", "stream"]
    model = [str(plain.checkpoint), "--data", str(plain.bin), "--max-len-b", "3", "--decode-k", "2"]
    options: Any = {"cwd": ROOT, "env": environment(TERM="xterm")}
    with terminal([*command, *model], **options) as screen:
        screen.type("a1 a3" + BACKSPACE + "2 ")
        lines = screen.until(lambda lines: has("ready:")(lines) and lane(lines, "en") != "")
        assert lane(lines, "de") == "a1 a2"
        screen.type("\r" + CTRL_D)
        assert screen.wait() == 0 and screen.settings() == screen.before
    with terminal([*command, "nowhere.pt", "--data", str(plain.bin)], **options) as screen:
        assert screen.wait() == 2 and screen.settings() == screen.before
        assert errors(screen) == b"fairseq-milk stream: there is no checkpoint nowhere.pt\n"


def errors(screen: Terminal) -> bytes:
    assert screen.process.stderr is not None
    return screen.process.stderr.read()
