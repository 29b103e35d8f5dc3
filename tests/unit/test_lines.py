"""What `fairseq-milk stream` writes line by line: as it is into a pipe, without control characters to a terminal."""

import json
import sys
from typing import Callable, Dict, Type

import pytest

from fairseq_milk.live.lines import JsonTranslation, LineTranslation
from fairseq_milk.live.session import Session
from fairseq_milk.text.vocabulary import SPECIAL, Vocabulary
from fairseq_milk.text.words import SourceWords, TargetText
from tests.support.stand_in_translators import stand_in

CLEARS = "\x1b[2J\x9b"  # a word that would clear the screen


def clearing_session() -> Session:
    """A session of a model whose dictionary has a word that clears the screen."""
    model = stand_in("waitk")
    words = Vocabulary([*SPECIAL, CLEARS])
    return Session(model.token_session(k=1), SourceWords(Vocabulary([*SPECIAL, "er"])), TargetText(words))


READ: Dict[Type[LineTranslation], Callable[[str], str]] = {
    LineTranslation: lambda out: out.rstrip("\n"),
    JsonTranslation: lambda out: str(json.loads(out.splitlines()[-1])["text"]),
}


@pytest.mark.parametrize("kind", READ)
def test_a_word_of_a_dictionary_cannot_control_the_terminal(
    kind: Type[LineTranslation], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind(clearing_session).run(["er", None])
    assert READ[kind](capsys.readouterr().out) == CLEARS
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    kind(clearing_session).run(["er", None])
    out = capsys.readouterr().out
    assert "\\x9b" in out and out.replace("\n", "").isprintable()
