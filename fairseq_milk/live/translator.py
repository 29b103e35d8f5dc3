"""A model with its text processing: the interface of live translation."""

from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Protocol

from ..generation.schedule import TokenSession
from ..text.words import SourceWords, TargetText
from .knobs import Knob, Settings, settings
from .session import Piece, Session, Translation


class Languages(NamedTuple):
    source: str
    target: str


class Model(Protocol):
    """The interface of a model: a checkpoint in torch, or an exported folder."""

    mechanism: str  # its name, such as milk
    description: str  # one line
    knobs: Dict[str, Knob]

    def begin(self, settings: Settings) -> TokenSession:
        """Begin a new sentence."""


class Translator:
    """Translates text, or words as they arrive; any number of sessions at once, from any thread.

    knobs: the options of a session by name, with default and range.

    >>> translation = translator.translate("er hat das buch gelesen")   # a toy: word for word, wait-3
    >>> translation.text, translation.delays
    ('he has the book read', [3, 4, 5, 6, 6, 6])
    >>> round(translation.latency.DAL, 2)
    3.0
    >>> [piece.text for piece in translator.stream(["er", "hat", "das"], k=1)]
    ['he', ' has', ' the']
    >>> translator.knobs["k"].default
    3
    """

    def __init__(self, model: Model, source: SourceWords, target: TargetText, languages: Languages) -> None:
        self._model, self._source, self._target = model, source, target
        self.languages = languages
        self.mechanism, self.description, self.knobs = model.mechanism, model.description, model.knobs

    @property
    def source_symbols(self) -> List[str]:
        """The tokens of the source side, in order."""
        return list(self._source.dictionary.symbols)

    @property
    def target_symbols(self) -> List[str]:
        return list(self._target.dictionary.symbols)

    def __repr__(self) -> str:
        return f"<Translator {self.description}>"

    def session(self, **knobs: Any) -> Session:
        """Begin a new sentence.  knobs: values by name, see `self.knobs`; the others have their defaults."""
        return Session(self.token_session(**knobs), self._source, self._target)

    def token_session(self, **knobs: Any) -> TokenSession:
        """Begin a new sentence that takes and returns token numbers."""
        return self._model.begin(settings(self.knobs, knobs))

    def stream(self, words: Iterable[str], **knobs: Any) -> Iterator[Piece]:
        """The pieces of one sentence, each as soon as it is decided; words are taken only as needed."""
        session = self.session(**knobs)
        for word in words:
            yield from session.push(word)
        yield from session.end()

    def translate(self, text: str, **knobs: Any) -> Translation:
        """Translate a whole sentence as if it were sent word by word."""
        session = self.session(**knobs)
        session.push(text)
        session.end()
        return session.translation()
