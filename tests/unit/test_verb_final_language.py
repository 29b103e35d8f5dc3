"""The oracle delays of examples/verb_final against the definition, by brute force."""

import functools
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.verb_final import language, text
from examples.verb_final.language import Sentence
from examples.verb_final.lexicon import Lexicon, Slot, words

EOS = "</s>"
FULL = Lexicon.default()
MINIATURE = Lexicon.miniature()
ADVERB = MINIATURE.slots[0]
PREPOSITION = Slot(words("mit:with"), True, 0.5)
SECOND_ADVERB = Slot(words("gern:gladly"), False, 0.5)
SMALLER = replace(MINIATURE, adjectives=(), pronouns=(), separable={"nimmt": MINIATURE.separable["nimmt"]})
MINIATURES = {
    "one adverb": MINIATURE,
    "no adjuncts": replace(MINIATURE, slots=()),
    "two adverbs": replace(SMALLER, slots=(ADVERB, SECOND_ADVERB)),
    "adverb, then preposition": replace(SMALLER, slots=(SECOND_ADVERB, PREPOSITION)),
    "preposition, then adverb": replace(SMALLER, slots=(PREPOSITION, SECOND_ADVERB)),
}


def with_eos(tokens: Sequence[str]) -> Tuple[str, ...]:
    return (*tokens, EOS)


def agreement(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the common prefix of a and b."""
    return next((n for n, (left, right) in enumerate(zip(a, b)) if left != right), min(len(a), len(b)))


class Trie:
    """For each source prefix, the target tokens on which all its sentences agree."""

    def __init__(self) -> None:
        self.child: Dict[Tuple[int, str], int] = {}
        self.agreed: List[Tuple[str, ...]] = [()]

    def path(self, source: Sequence[str]) -> Iterator[int]:
        node = 0
        for token in with_eos(source):
            node = self.child.setdefault((node, token), len(self.child) + 1)
            yield node

    def add(self, source: Sequence[str], target: Sequence[str]) -> None:
        full = with_eos(target)
        for node in self.path(source):
            if node == len(self.agreed):
                self.agreed.append(full)
            elif full[: len(self.agreed[node])] != self.agreed[node]:
                self.agreed[node] = full[: agreement(full, self.agreed[node])]

    def delays(self, source: Sequence[str]) -> Tuple[int, ...]:
        found: List[int] = []
        for read, node in enumerate(self.path(source), start=1):
            found += [read] * (len(self.agreed[node]) - len(found))
        return tuple(found)


@functools.cache
def treebank() -> Dict[str, Sentence]:
    """The sentences of the miniature language by their source."""
    return {" ".join(sentence.source): sentence for sentence in language.enumerate_sentences(MINIATURE)}


def number_of_sentences(lexicon: Lexicon) -> int:
    names = len(lexicon.first_names) * len(lexicon.last_names)
    phrases = len(lexicon.determiners) * (1 + len(lexicon.adjectives)) * len(lexicon.nouns)
    phrases += names * (1 + len(lexicon.nouns))
    openings = len(lexicon.conjunctions)
    openings += len(lexicon.pronouns) * len(lexicon.matrix_verbs) * len(lexicon.complementisers)
    separable = sum(map(len, lexicon.separable.values()))
    total = phrases**2 * (len(lexicon.verbs) + separable + openings * (len(lexicon.verbs) + separable))
    for slot in lexicon.slots:
        total *= 1 + len(slot.words) * (phrases if slot.governs else 1)
    return total


@pytest.mark.parametrize("name", MINIATURES)
def test_delays_are_the_earliest_determination_in_the_whole_language(name: str) -> None:
    sentences = list(language.enumerate_sentences(MINIATURES[name]))
    assert len({sentence.source for sentence in sentences}) == len(sentences) == number_of_sentences(MINIATURES[name])
    trie = Trie()
    for sentence in sentences:
        trie.add(sentence.source, sentence.target)
    wrong = [s for s in sentences if s.delays != trie.delays(s.source)]
    assert not wrong, f"{len(wrong)} of {len(sentences)}, e.g. {wrong[0]}, true delays {trie.delays(wrong[0].source)}"


def test_the_miniature_is_as_large_as_it_says() -> None:
    assert f"{number_of_sentences(MINIATURE):,} sentences" in str(Lexicon.miniature.__doc__)


def test_every_sample_is_in_the_enumeration() -> None:
    rng = random.Random(3)
    for sentence in (language.sample(rng, MINIATURE) for _ in range(2000)):
        assert treebank()[" ".join(sentence.source)] == sentence


class Rewritten:
    """A random generator that repeats recorded choices as long as they are valid, then chooses at random."""

    def __init__(self, written: Sequence[int], rng: random.Random) -> None:
        self.written, self.rng = written, rng
        self.taken: List[int] = []
        self.sizes: List[int] = []

    def __call__(self, options: Any, weights: Any = None) -> Any:
        step = len(self.taken)
        fits = step < len(self.written) and self.written[step] < len(options)
        self.taken.append(self.written[step] if fits else self.rng.randrange(len(options)))
        self.sizes.append(len(options))
        return options[self.taken[-1]]


def neighbours(script: Rewritten, rng: random.Random) -> Iterator[Sentence]:
    """Every derivation that differs in a single choice, with the later choices kept, and with random ones."""
    for step, size in enumerate(script.sizes):
        for other in range(size):
            head = [*script.taken[:step], other]
            yield language.derive(FULL, Rewritten([*head, *script.taken[step + 1 :]], rng))
            yield language.derive(FULL, Rewritten(head, rng))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 10**9))
def test_delays_of_the_full_language_are_sufficient_and_necessary(seed: int) -> None:
    rng = random.Random(seed)
    script = Rewritten([], rng)
    sentence = language.derive(FULL, script)
    target = with_eos(sentence.target)
    needed = [1] * len(target)
    for other in neighbours(script, rng):
        shared = agreement(with_eos(sentence.source), with_eos(other.source))
        agreed = agreement(target, with_eos(other.target))
        if agreed < len(target):
            assert shared < sentence.delays[agreed], (sentence, other)
            needed[agreed:] = [max(least, shared + 1) for least in needed[agreed:]]
    assert tuple(needed) == sentence.delays, sentence


@pytest.mark.parametrize(
    ("source", "target", "delays"),
    [
        ("der mann sieht ein hund", "the man sees a dog", [1, 2, 3, 4, 5, 6]),
        ("der mann sieht ein hund heute", "the man sees a dog today", [1, 2, 3, 4, 5, 6, 6]),
        ("weil der mann ein hund heute sieht", "because the man sees a dog today", [1, 2, 3, 7, 7, 7, 7, 7]),
        ("der mann nimmt ein hund heute an", "the man accepts a dog today", [1, 2, 7, 7, 7, 7, 7]),
        ("john smith sieht mary wood", "john smith sees mary wood", [3, 3, 3, 6, 6, 6]),
        ("john smith s hund sieht ein mann", "the dog of john smith sees a man", [3, 4, 4, 4, 4, 5, 6, 7, 8]),
        ("wir wissen ob der mann ein hund anruft", "we know whether the man calls a dog", [1, 2, 3, 4, 5, 8, 8, 8, 8]),
    ],
)
def test_examples_worked_by_hand(source: str, target: str, delays: List[int]) -> None:
    sentence = treebank()[source]
    assert " ".join(sentence.target) == target
    assert list(sentence.delays) == delays


def test_shape_of_the_full_language() -> None:
    rng = random.Random(1)
    sentences = [language.sample(rng, FULL) for _ in range(5000)]
    lengths = [len(sentence.source) for sentence in sentences]
    kinds = Counter(sentence.kind for sentence in sentences)
    assert min(lengths) == 5 and max(lengths) <= 25
    assert 8 <= sum(lengths) / len(lengths) <= 11
    assert [round(kinds[kind] / len(sentences), 1) for kind in language.KINDS] == [0.4, 0.4, 0.2]
    for side in ("source", "target"):
        assert 100 <= len({token for sentence in sentences for token in getattr(sentence, side)}) <= 160


@pytest.mark.parametrize(
    "change",
    [
        {"nouns": words("mann:man")},
        {"separable": {"nimmt": words("an:accepts")}},
        {"separable": {}},
        {"slots": (Slot((), False, 0.5),)},
        {"nouns": words("mann:man hund:man")},
        {"nouns": words("mann:man sieht:look")},
        {"first_names": words("john:the mary")},
        {"determiners": words("ein:a kein:no"), "first_names": words("john:the mary")},
    ],
)
def test_a_lexicon_with_predictable_or_ambiguous_words_is_refused(change: Dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        replace(MINIATURE, **change)


SIZES = {"train": 3000, "valid": 100, "test": 200}


def test_corpus_is_disjoint_aligned_and_reproducible() -> None:
    corpus = text.draw_corpus(SIZES, seed=1)
    files, again = text.as_files(corpus), text.as_files(text.draw_corpus(SIZES, seed=1))
    fewer, other = (
        text.as_files(text.draw_corpus(sizes, seed)) for sizes, seed in (({**SIZES, "train": 10}, 1), (SIZES, 2))
    )
    assert set(files) == {f"{split}.{side}" for split in SIZES for side in ("de", "en")} | {"test.delays", "test.kind"}
    assert files == again
    assert files["test.de"] == fewer["test.de"] != other["test.de"]
    for split, size in SIZES.items():
        assert files[f"{split}.de"].splitlines() == [" ".join(s.source) for s in corpus[split]]
        assert files[f"{split}.en"].count("\n") == len(files[f"{split}.de"].splitlines()) == size
    assert files["test.delays"].splitlines() == [" ".join(map(str, s.delays)) for s in corpus["test"]]
    assert files["test.kind"].splitlines() == [s.kind for s in corpus["test"]]
    sources = [line for split in SIZES for line in files[f"{split}.de"].splitlines()]
    assert len(set(sources)) == sum(SIZES.values())


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: Path, target: Path) -> None:
        assert source.read_text() == "new\n"
        raise KeyboardInterrupt

    text.write_files(tmp_path, {"test.de": "old\n"})
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        text.write_files(tmp_path, {"test.de": "new\n"})
    assert [path.name for path in tmp_path.iterdir()] == ["test.de"]
    assert (tmp_path / "test.de").read_text() == "old\n"


@pytest.mark.parametrize("bad", [["--test", "0"], ["--train", "-5"], ["--valid", "many"]])
def test_bad_sizes_are_one_sentence(bad: List[str], tmp_path: Path, capsys: "pytest.CaptureFixture[str]") -> None:
    with pytest.raises(SystemExit) as stop:
        text.main(["--out", str(tmp_path / "data"), *bad])
    assert stop.value.code == 2
    assert "error:" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "data").exists()
