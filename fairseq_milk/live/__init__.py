"""Live translation with a checkpoint or an exported folder, through one interface.

    import fairseq_milk

    translator = fairseq_milk.load("MODEL")            # a folder of `fairseq-milk export`
    translator.translate("ein Hund läuft").text
    session = translator.session(threshold=0.3)
    for word in words:
        for piece in session.push(word):
            print(piece.text, end="")
    session.end()

Importing this package needs neither torch nor fairseq; a checkpoint needs both.
"""

from .knobs import Knob
from .latency import Latency
from .loading import TextOptions, load
from .session import END, READ, WRITE, Event, Piece, Session, Translation
from .translator import Languages, Translator

__all__ = [
    "END",
    "Event",
    "Knob",
    "Languages",
    "Latency",
    "Piece",
    "READ",
    "Session",
    "TextOptions",
    "Translation",
    "Translator",
    "WRITE",
    "load",
]
