"""The progress lines of a sweep."""

import io
from typing import List

import pytest

from fairseq_milk.console import progress
from fairseq_milk.console.progress import Line, cut


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(written: str) -> List[str]:
    """What a terminal shows: \\r, n lines up, and erase to the end are all that is used."""
    lines, row = [""], 0
    for chunk in written.replace("\x1b[J", "\0J\0").replace("\x1b[", "\0").split("\0"):
        if chunk == "J":
            lines, lines[row] = lines[: row + 1], ""
        elif chunk[1:2] == "A" and chunk[0].isdigit():
            row -= int(chunk[0])
        else:
            for number, text in enumerate(chunk.replace("\r", "").split("\n")):
                row += number > 0
                lines += [""] * (row + 1 - len(lines))
                lines[row] += text
    return lines


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setitem(progress.PERIOD, True, 0.0)
    monkeypatch.setenv("COLUMNS", "30")
    return Terminal()


def test_each_run_has_a_line_of_its_own(terminal: Terminal) -> None:
    line = Line(terminal)
    line.show(["a update 1/9", "b update 2/9", "0 of 2 done"])
    line.show(["a update 3/9 with a loss of which there is no room", "b update 4/9", "0 of 2 done"])
    assert screen(terminal.getvalue()) == ["a update 3/9 with a loss of …", "b update 4/9", "0 of 2 done"]
    line.say("a: complete")
    line.show(["b update 5/9", "1 of 2 done"])
    assert screen(terminal.getvalue()) == ["a: complete", "b update 5/9", "1 of 2 done"]
    line.clear()
    assert screen(terminal.getvalue()) == ["a: complete", ""]


def test_in_a_file_one_line_has_all_and_few_are_written() -> None:
    stream = io.StringIO()
    line = Line(stream)
    for _ in range(3):
        line.show(["a", "b"])
    line.say("done")
    assert stream.getvalue() == "a | b\ndone\n"


def test_a_terminal_is_not_written_to_all_the_time() -> None:
    terminal = Terminal()
    line = Line(terminal)
    for _ in range(3):
        line.show(["a", "b"])
    assert terminal.getvalue() == "a\nb"


def test_cut() -> None:
    assert (cut("abcde", 5), cut("abcdef", 5)) == ("abcde", "abcd…")
