"""Translators without a trained model, for tests of users of `fairseq_milk.live`: real sessions with a toy model.

Each word has one translation.  `waitk` writes it k - 1 words later; `milk` writes it at once, but after "hat" it waits
for the end of the source unless its threshold is below 0.5.
"""

import time
from typing import Dict, List, Optional

from fairseq_milk.generation.schedule import TokenSession, Written
from fairseq_milk.live import Languages, Translator
from fairseq_milk.live.knobs import Knob, Settings, knobs_of
from fairseq_milk.text.vocabulary import SPECIAL, Vocabulary
from fairseq_milk.text.words import SourceWords, TargetText

LEXICON = {"er": "he", "sie": "she", "hat": "has", "das": "the", "buch": "book", "gelesen": "read", "und": "and"}
LONG = [f"wort{i}" for i in range(500)]
EOS = 2


class ToyModel:
    """seconds: of computing per source token.  fails: the word that it cannot take."""

    def __init__(self, mechanism: str, seconds: float = 0.0, fails: Optional[str] = None) -> None:
        self.mechanism, self.seconds = mechanism, seconds
        self.description = f"de-en {mechanism}, a toy"
        self.knobs: Dict[str, Knob] = knobs_of(mechanism == "milk", 3 if mechanism == "waitk" else None)
        self.fails = fails

    def begin(self, settings: Settings) -> "ToySession":
        return ToySession(self, settings)


class ToySession(TokenSession):
    eos = EOS

    def __init__(self, model: ToyModel, settings: Settings) -> None:
        self.model, self.settings = model, settings
        self.tokens: List[int] = []
        self.written = 0

    def read(self, token: int) -> None:
        if self.model.seconds:
            time.sleep(self.model.seconds)
        if SOURCE[token] == self.model.fails:
            raise RuntimeError("the toy is broken")
        self.tokens.append(token)

    def wants_to_read(self) -> bool:
        if self.source_ended:
            return False
        if self.settings.k is not None:
            return self.written + self.settings.k > len(self.tokens)
        threshold = 0.5 if self.settings.threshold is None else self.settings.threshold
        waits = threshold >= 0.5 and SOURCE.index("hat") in self.tokens
        return waits or self.written >= len(self.tokens)

    def write(self) -> Optional[Written]:
        token = self.tokens[self.written]  # the dictionaries have the same order
        self.written += 1
        return Written(token, len(self.tokens), 0.0)


SOURCE = Vocabulary([*SPECIAL, *LEXICON, *LONG])
TARGET = Vocabulary([*SPECIAL, *LEXICON.values(), *(word.replace("wort", "word") for word in LONG)])


def stand_in(mechanism: str, seconds: float = 0.0, fails: Optional[str] = None) -> Translator:
    """A translator of mechanism `milk` or `waitk`."""
    model = ToyModel(mechanism, seconds, fails)
    return Translator(model, SourceWords(SOURCE), TargetText(TARGET), Languages("de", "en"))
