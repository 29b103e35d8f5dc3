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

All else is word for word. In verb-final clauses the separable verbs are joined (`annimmt`).

The oracle delay of a target token is the length of the shortest source prefix (the source EOS counts as a token) after
which all sentences of the language agree on the target up to this token. A word is known when its source word is read,
but a separable verb at its particle, and a name at the token *after* it, which tells whether a possessive follows.
The target EOS is known at the source EOS, but at the last word where nothing can follow it: a final verb, a particle,
the last slot. So that nothing can be guessed, each word has a translation of its own, and a class of which a word must
come has at least two (adjectives and adjuncts, which may be absent, need one).
`tests/test_verb_final_language.py` checks the delays against the enumeration of whole miniature languages.
"""

import argparse
import functools
import itertools
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, TypeVar

T = TypeVar("T")
Word = Tuple[str, str]  # source, target
Words = Tuple[Word, ...]

KINDS = ("verb-second", "verb-final", "separable")
SPLITS = ("train", "valid", "test")
SOURCE, TARGET = "de", "en"


class Choose(Protocol):
    """Decides one step of a derivation: at random for a sample, in turn for an enumeration."""

    def __call__(self, options: Sequence[T], weights: Optional[Sequence[float]] = None) -> T: ...


class Sentence(NamedTuple):
    source: Tuple[str, ...]
    target: Tuple[str, ...]
    delays: Tuple[int, ...]  # one for each target token and one for the target EOS, in 1..len(source) + 1
    kind: str


class Phrase(NamedTuple):
    """Source words, and target words each with the number of source tokens, from the phrase's first, that decide it."""

    source: Tuple[str, ...]
    target: Tuple[Tuple[str, int], ...]


class Slot(NamedTuple):
    """A place for one adjunct: an adverb, or a preposition that governs a noun phrase."""

    words: Words
    governs: bool
    probability: float


def words(text: str) -> Words:
    """Reads 'mann:man haus:house'; a word without a colon is its own translation."""
    pairs = (item.partition(":") for item in text.split())
    return tuple((source, target or source) for source, _, target in pairs)


@dataclass(frozen=True)
class Lexicon:
    """The words of each class. Adjectives, pronouns (then no matrix clauses) and slots may be empty."""

    determiners: Words
    adjectives: Words
    nouns: Words
    first_names: Words
    last_names: Words
    verbs: Words
    separable: Dict[str, Words]  # stem -> particle and the translation of both together
    conjunctions: Words
    pronouns: Words
    matrix_verbs: Words
    complementisers: Words
    slots: Tuple[Slot, ...]

    def __post_init__(self) -> None:
        required = [self.determiners, self.nouns, self.first_names, self.last_names, self.verbs, self.conjunctions]
        required += [self.matrix_verbs, self.complementisers]
        optional = [self.adjectives, self.pronouns, *(slot.words for slot in self.slots)]
        particles = list(self.separable.values())
        if not particles or any(len(members) < 2 for members in required + particles):
            raise ValueError("A class of which a word must come, and the particles of a stem, need at least two words.")
        if not all(slot.words for slot in self.slots):
            raise ValueError("A slot needs at least one word.")
        free = list(itertools.chain(*required, *optional))
        source = [s for s, _ in free] + [s for s, _ in self.joined] + list(self.separable) + ["s"]
        source += {s for members in particles for s, _ in members}
        target = [t for _, t in free] + [t for _, t in self.joined] + ["of"]
        target += {"the"} - {t for _, t in self.determiners}
        if len(set(source)) < len(source) or len(set(target)) < len(target):
            raise ValueError("A word belongs to one class and has a translation of its own.")

    @functools.cached_property
    def joined(self) -> Words:
        """The separable verbs as they stand at the end of a verb-final clause."""
        return tuple((particle + stem, verb) for stem, members in self.separable.items() for particle, verb in members)

    @classmethod
    def default(cls) -> "Lexicon":
        return cls(
            determiners=words("der:the ein:a dieser:this jeder:every"),
            adjectives=words(
                "alte:old junge:young kleine:small grosse:big rote:red blaue:blue neue:new stille:quiet"
                " reiche:rich arme:poor kluge:clever muede:tired fremde:foreign schoene:beautiful"
            ),
            nouns=words(
                "mann:man frau:woman kind:child hund:dog katze:cat pferd:horse vogel:bird arzt:doctor anwalt:lawyer"
                " lehrer:teacher bauer:farmer koch:cook nachbar:neighbour bruder:brother schwester:sister"
                " freund:friend buch:book brief:letter haus:house garten:garden tisch:table wagen:car"
                " plan antrag:request bild:picture"
            ),
            first_names=words("john mary peter anna paul laura"),
            last_names=words("smith miller jones baker clark wood"),
            verbs=words(
                "sieht:sees kennt:knows sucht:seeks findet:finds liebt:loves hasst:hates kauft:buys verkauft:sells"
                " malt:paints hoert:hears fragt:asks traegt:carries vergisst:forgets besucht:visits"
                " zeigt:shows holt:fetches"
            ),
            separable={
                "nimmt": words("an:accepts ab:removes auf:absorbs"),
                "gibt": words("auf:abandons ab:submits zurueck:returns"),
                "stellt": words("vor:introduces um:converts aus:exhibits"),
                "bringt": words("um:murders an:attaches zurueck:restores"),
                "zieht": words("an:attracts vor:prefers aus:extracts"),
                "ruft": words("an:calls auf:summons zurueck:recalls"),
            },
            conjunctions=words("weil:because wenn:if obwohl:although bevor:before"),
            pronouns=words("wir:we sie:they alle:all"),
            matrix_verbs=words("wissen:know sagen:say hoffen:hope glauben:believe"),
            complementisers=words("dass:that ob:whether"),
            slots=(
                Slot(words("heute:today gestern:yesterday morgen:tomorrow jetzt:now abends:nightly"), False, 0.4),
                Slot(words("oft:often immer:always selten:rarely manchmal:sometimes"), False, 0.3),
                Slot(words("gern:gladly schnell:quickly leise:softly langsam:slowly heimlich:secretly"), False, 0.3),
                Slot(words("mit:with ohne:without"), True, 0.2),
                Slot(words("neben:beside hinter:behind gegenueber:opposite"), True, 0.2),
            ),
        )

    @classmethod
    def miniature(cls) -> "Lexicon":
        """Small enough to enumerate: 79,200 sentences; vary it with `dataclasses.replace`."""
        return cls(
            determiners=words("der:the ein:a"),
            adjectives=words("alte:old"),
            nouns=words("mann:man hund:dog"),
            first_names=words("john mary"),
            last_names=words("smith wood"),
            verbs=words("sieht:sees kennt:knows"),
            separable={"nimmt": words("an:accepts ab:removes"), "ruft": words("an:calls auf:summons")},
            conjunctions=words("weil:because wenn:if"),
            pronouns=words("wir:we sie:they"),
            matrix_verbs=words("wissen:know sagen:say"),
            complementisers=words("dass:that ob:whether"),
            slots=(Slot(words("heute:today gestern:yesterday"), False, 0.5),),
        )


def word(pair: Word) -> Phrase:
    return Phrase((pair[0],), ((pair[1], 1),))


def join(parts: Sequence[Phrase], order: Optional[Iterable[int]] = None) -> Phrase:
    """The parts one after the other; on the target side in the given order."""
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
    """A token is known once all before it are: the delays are a running maximum."""
    target = tuple(token for token, _ in phrase.target)
    known = [position for _, position in phrase.target] + [len(phrase.source) + open_ended]
    return Sentence(phrase.source, target, tuple(itertools.accumulate(known, max)), kind)


def sample(rng: random.Random, lexicon: Lexicon) -> Sentence:
    def choose(options: Sequence[T], weights: Optional[Sequence[float]] = None) -> T:
        return rng.choices(options, weights)[0]

    return derive(lexicon, choose)


class Script:
    """Chooses as written, then always the first option; records the choices and the numbers of options."""

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
    """Every sentence once, in the order of an odometer whose wheels are the choices."""
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


def draw_corpus(sizes: Mapping[str, int], seed: int) -> Dict[str, List[Sentence]]:
    """Distinct sentences for each split; the test set depends on nothing but its size and the seed."""
    if set(sizes) != set(SPLITS) or min(sizes.values()) < 1:
        raise ValueError("The sizes of train, valid and test must each be at least 1.")
    lexicon = Lexicon.default()
    seen: Dict[Tuple[str, ...], str] = {}  # source -> split
    corpus: Dict[str, List[Sentence]] = {}
    for split in reversed(SPLITS):
        rng = random.Random(f"{seed} {split}")
        corpus[split] = []
        while len(corpus[split]) < sizes[split]:
            sentence = sample(rng, lexicon)
            if sentence.source not in seen:
                seen[sentence.source] = split
                corpus[split].append(sentence)
    return corpus


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """All of the file or nothing of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        os.replace(partial, path)
    finally:
        if partial.exists():
            partial.unlink()


def write_corpus(folder: Path, sizes: Mapping[str, int], seed: int) -> Dict[str, List[Sentence]]:
    """Writes {train,valid,test}.{de,en}, test.delays and test.kind; no source sentence occurs twice."""
    corpus = draw_corpus(sizes, seed)
    folder.mkdir(parents=True, exist_ok=True)
    for split, sentences in corpus.items():
        write_lines(folder / f"{split}.{SOURCE}", (" ".join(sentence.source) for sentence in sentences))
        write_lines(folder / f"{split}.{TARGET}", (" ".join(sentence.target) for sentence in sentences))
    write_lines(folder / "test.delays", (" ".join(map(str, sentence.delays)) for sentence in corpus["test"]))
    write_lines(folder / "test.kind", (sentence.kind for sentence in corpus["test"]))
    return corpus


def oracle_latency(sentences: Sequence[Sentence]) -> Dict[str, float]:
    """Mean DAL, AL and AP of the oracle: words, EOS counted on both sides, |y| of the reference."""
    import torch

    from fairseq_milk import functional

    x = torch.tensor([len(sentence.source) + 1 for sentence in sentences])
    y = torch.tensor([len(sentence.delays) for sentence in sentences])
    g = torch.zeros(len(sentences), int(y.max()))
    for row, sentence in zip(g, sentences):
        row[: len(sentence.delays)] = torch.tensor(sentence.delays, dtype=g.dtype)
    measures = {
        "DAL": functional.differentiable_average_lagging,
        "AL": functional.average_lagging,
        "AP": functional.average_proportion,
    }
    return {name: float(measure(g, x, y).mean()) for name, measure in measures.items()}


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description="Write a corpus of the verb-final language.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    for split, size in zip(SPLITS, (20000, 500, 500)):
        parser.add_argument(f"--{split}", type=int, default=size, help="number of sentences (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        corpus = write_corpus(options.out, {split: getattr(options, split) for split in SPLITS}, options.seed)
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"Cannot write to {options.out}: {error.strerror}.")
    sizes = ", ".join(f"{len(corpus[split])} {split}" for split in SPLITS)
    print(f"{options.out}: {sizes} sentences.")
    try:
        latency = oracle_latency(corpus["test"])
    except ImportError as error:
        sys.exit(f"The corpus is complete, but its oracle latency needs fairseq_milk and torch installed ({error}).")
    figures = "  ".join(f"{name} {value:.3f}" for name, value in latency.items())
    print(f"Oracle of the test set: {figures}  (unit: word, EOS counted on both sides, |y| of the reference)")


if __name__ == "__main__":
    main()
