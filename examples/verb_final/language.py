"""A synthetic German-like language whose best simultaneous schedule is known.

Rules, source => target ([ ] is optional; each adjunct slot is filled at most once, in a fixed order):

    verb-second   NP verb NP adjuncts            =>  NP verb NP adjuncts
    verb-final    opening NP NP adjuncts verb    =>  opening NP verb NP adjuncts
    separable     NP stem NP adjuncts particle   =>  NP verb NP adjuncts     (stem and particle together name the verb)
    opening       conjunction | pronoun matrix-verb complementiser
    NP            determiner [adjective] noun
                  first last                     =>  first last
                  first last s noun              =>  the noun of first last
    adjunct       adverb | preposition NP

Everything else is translated word for word. In verb-final clauses the separable verbs are joined (`annimmt`).

The oracle delay of a target token is the length of the shortest source prefix (the source EOS counts as a token) after
which all sentences of the language agree on the target up to this token. A word is known when its source word is read,
with two exceptions: a separable verb is known at its particle, and a name at the token *after* it, which shows whether
a possessive follows. The target EOS is known at the source EOS, or at the last word if nothing can follow it: a final
verb, a particle, the last slot. So that nothing can be guessed, each word has its own translation, and a class of which
a word is required has at least two words (adjectives and adjuncts, which are optional, need one).
`tests/unit/test_verb_final_language.py` checks the delays against the enumeration of whole miniature languages.
"""

import itertools
import random
from typing import Iterable, Iterator, List, NamedTuple, Optional, Protocol, Sequence, Tuple, TypeVar

from examples.verb_final.lexicon import Lexicon, Word

T = TypeVar("T")
KINDS = ("verb-second", "verb-final", "separable")


class Choose(Protocol):
    """Chooses an option in a derivation: at random for a sample, in turn for an enumeration."""

    def __call__(self, options: Sequence[T], weights: Optional[Sequence[float]] = None) -> T: ...


class Sentence(NamedTuple):
    source: Tuple[str, ...]
    target: Tuple[str, ...]
    delays: Tuple[int, ...]  # one per target token and one for the target EOS, in 1..len(source) + 1
    kind: str


class Phrase(NamedTuple):
    """Source words, and target words each with the number of source tokens, from the phrase's first, that decide it."""

    source: Tuple[str, ...]
    target: Tuple[Tuple[str, int], ...]


def word(pair: Word) -> Phrase:
    return Phrase((pair[0],), ((pair[1], 1),))


def join(parts: Sequence[Phrase], order: Optional[Iterable[int]] = None) -> Phrase:
    """Concatenate the parts; on the target side in the given order."""
    starts = [0, *itertools.accumulate(len(part.source) for part in parts)]
    source = tuple(token for part in parts for token in part.source)
    order = range(len(parts)) if order is None else order
    return Phrase(source, tuple((token, starts[k] + known) for k in order for token, known in parts[k].target))


def happens(choose: Choose, probability: float) -> bool:
    return choose((False, True), (1 - probability, probability))


def noun_phrase(lexicon: Lexicon, choose: Choose) -> Phrase:
    shape = choose(("determined", "name", "possessive"), (0.7, 0.15, 0.15))
    if shape == "determined":
        parts = [word(choose(lexicon.determiners))]
        if lexicon.adjectives and happens(choose, 0.3):
            parts.append(word(choose(lexicon.adjectives)))
        return join([*parts, word(choose(lexicon.nouns))])
    first, last = choose(lexicon.first_names), choose(lexicon.last_names)
    if shape == "name":
        return Phrase((first[0], last[0]), ((first[1], 3), (last[1], 3)))
    noun = choose(lexicon.nouns)
    target = (("the", 3), (noun[1], 4), ("of", 3), (first[1], 3), (last[1], 3))
    return Phrase((first[0], last[0], "s", noun[0]), target)


def opening(lexicon: Lexicon, choose: Choose) -> Phrase:
    if lexicon.pronouns and happens(choose, 0.4):
        classes = (lexicon.pronouns, lexicon.matrix_verbs, lexicon.complementisers)
        return join([word(choose(members)) for members in classes])
    return word(choose(lexicon.conjunctions))


def adjuncts(lexicon: Lexicon, choose: Choose) -> Tuple[List[Phrase], bool]:
    """The adjuncts, and whether another could follow them."""
    filled, open_ended = [], False
    for slot in lexicon.slots:
        open_ended = not happens(choose, slot.probability)
        if not open_ended:
            head = word(choose(slot.words))
            filled.append(join([head, noun_phrase(lexicon, choose)]) if slot.governs else head)
    return filled, open_ended


def derive(lexicon: Lexicon, choose: Choose) -> Sentence:
    """One sentence; the choices are made in the order of the source."""
    kind = choose(KINDS, (0.4, 0.4, 0.2))
    parts: List[Phrase] = [opening(lexicon, choose)] if kind == "verb-final" else []
    parts.append(noun_phrase(lexicon, choose))
    stem = choose(list(lexicon.separable)) if kind == "separable" else ""
    if kind == "verb-second":
        parts.append(word(choose(lexicon.verbs)))
    elif kind == "separable":
        parts.append(Phrase((stem,), ()))
    parts.append(noun_phrase(lexicon, choose))
    filled, open_ended = adjuncts(lexicon, choose)
    parts += filled
    if kind == "verb-second":
        return finish(kind, join(parts), open_ended)
    parts.append(word(choose(lexicon.separable[stem] if stem else lexicon.verbs + lexicon.joined)))
    last = len(parts) - 1
    return finish(kind, join(parts, (0, 1, last, *range(2, last))), open_ended=False)


def finish(kind: str, phrase: Phrase, open_ended: bool) -> Sentence:
    """The sentence of a phrase: delays become a running maximum, since a token needs all tokens before it."""
    target = tuple(token for token, _ in phrase.target)
    known = [position for _, position in phrase.target] + [len(phrase.source) + open_ended]
    return Sentence(phrase.source, target, tuple(itertools.accumulate(known, max)), kind)


def sample(rng: random.Random, lexicon: Lexicon) -> Sentence:
    def choose(options: Sequence[T], weights: Optional[Sequence[float]] = None) -> T:
        return rng.choices(options, weights)[0]

    return derive(lexicon, choose)


class Script:
    """Makes the given choices, then always the first option; records the choices and the numbers of options."""

    def __init__(self, written: Sequence[int] = ()) -> None:
        self.written = written
        self.taken: List[int] = []
        self.sizes: List[int] = []

    def __call__(self, options: Sequence[T], weights: Optional[Sequence[float]] = None) -> T:
        step = len(self.taken)
        self.taken.append(self.written[step] if step < len(self.written) else 0)
        self.sizes.append(len(options))
        return options[self.taken[-1]]


def enumerate_sentences(lexicon: Lexicon) -> Iterator[Sentence]:
    """Every sentence of the language once, in lexicographic order of the choices."""
    written: Optional[List[int]] = []
    while written is not None:
        script = Script(written)
        yield derive(lexicon, script)
        written = advance(script.taken, script.sizes)


def advance(taken: List[int], sizes: List[int]) -> Optional[List[int]]:
    for step in reversed(range(len(taken))):
        if taken[step] + 1 < sizes[step]:
            return [*taken[:step], taken[step] + 1]
    return None
