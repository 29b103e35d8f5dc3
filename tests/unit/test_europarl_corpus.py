"""The corpus of examples/europarl_de_en, made from a stand-in for a clone of the public repository."""

import gzip
import math
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.europarl_de_en import corpus, speeches
from examples.europarl_de_en.sentence_alignment import (
    KINDS,
    MOST_REWARD,
    REWARD,
    Bead,
    align,
    length_cost,
    shared_words,
)

# ---- alignment ------------------------------------------------------------------------------------------------------


def every_alignment(i: int, j: int) -> Iterator[Tuple[Bead, ...]]:
    """All sequences of beads for i and j sentences."""
    if i == j == 0:
        yield ()
    for m, n in KINDS:
        if m <= i and n <= j:
            for before in every_alignment(i - m, j - n):
                yield (*before, Bead(tuple(range(i - m, i)), tuple(range(j - n, j))))


def cost(beads: Sequence[Bead], source: Sequence[str], target: Sequence[str], ratio: float) -> float:
    total = 0.0
    for bead in beads:
        sides = [source[i] for i in bead.source], [target[j] for j in bead.target]
        lengths = [sum(map(len, side)) for side in sides]
        words = [{word for sentence in side for word in shared_words(sentence)} for side in sides]
        total += length_cost(lengths[0], lengths[1], ratio) - math.log(KINDS[len(bead.source), len(bead.target)])
        total -= min(REWARD * len(words[0] & words[1]), MOST_REWARD)
    return total


WORDS = st.sampled_from(["der", "Paris", "1999", "Vorschlag"])
SENTENCES = st.lists(st.lists(WORDS, min_size=1).map(" ".join), max_size=3)


@settings(max_examples=30, deadline=None)
@given(SENTENCES, SENTENCES, st.sampled_from([0.8, 1.0, 1.2]))
def test_the_alignment_is_the_cheapest_of_all(source: List[str], target: List[str], ratio: float) -> None:
    found = align(source, target, ratio)
    assert [i for bead in found for i in bead.source] == list(range(len(source)))
    assert [j for bead in found for j in bead.target] == list(range(len(target)))
    least = min(cost(beads, source, target, ratio) for beads in every_alignment(len(source), len(target)))
    assert cost(found, source, target, ratio) == pytest.approx(least)


def test_the_cost_of_lengths() -> None:
    assert length_cost(100, 95, 0.95) == 0 == length_cost(0, 0, 1.0)
    assert length_cost(10, 20, 1.0) < length_cost(10, 40, 1.0) < math.inf
    # delta = 20 / sqrt(6.8 * 110); P(|delta| or more) = 0.4645 of a normal distribution
    assert math.exp(-length_cost(100, 120, 1.0)) == pytest.approx(0.4645, abs=2e-3)


def test_shared_words_tell_sentences_of_equal_length_apart() -> None:
    target = ["That was not right.", "Hautala went there.", "It was done by us."]
    before = align(["Hautala fuhr hin, und das war falsch.", "Wir haben das nun aber selbst getan."], target, 1.0)
    after = align(["Das ist nicht richtig gewesen, nein.", "Hautala fuhr hin, und wir taten das."], target, 1.0)
    assert before == [Bead((0,), (0, 1)), Bead((1,), (2,))] and after == [Bead((0,), (0,)), Bead((1,), (1, 2))]


# ---- speeches -------------------------------------------------------------------------------------------------------

DAYS = {"20000905": 1, "20001003": 2, "20001120": 3, "20050510": 4}


def sitting(language: str, day: str, items: Sequence[Tuple[str, Sequence[Tuple[str, str]]]]) -> str:
    written = "".join(
        f'<intervention id="{number}">'
        + "".join(f'<p sl="{spoken}">{text}</p>' for spoken, text in paragraphs)
        + '<a text="(Beifall)"/></intervention>'
        for number, paragraphs in items
    )
    return f'<text id="{day}" lang="{language}"><section id="1">{written}</section></text>'


def write_clone(folder: Path) -> Path:
    """Four sittings with one speech each that was held in German, and others."""
    for day, year in DAYS.items():
        texts: Dict[str, List[Tuple[str, List[Tuple[str, str]]]]] = {
            "de": [
                ("1", [("de", f"Herr Präsident! Das war im Jahr {year} so. Wir stimmen zu."), ("de", "(Beifall)")]),
                ("2", [("fr", "Das wurde auf Französisch gesagt.")]),
                ("3", [("de", "Das war nicht übersetzt worden.")]),  # the English file says that it was English
                ("4", [("de", "Ein Satz mit vier Wörtern."), ("de", "Noch ein Satz.")]),
            ],
            "en": [
                ("1", [("de", f"Mr President! That was so in the year {year} here. We agree, of course.")]),
                ("2", [("fr", "That was said in French.")]),
                ("3", [("en", "That had not been translated.")]),
                ("4", [("de", "A sentence that has six words. Another sentence.")]),
            ],
        }
        for language, items in texts.items():
            path = folder / speeches.XML / language / f"{day}.{language.upper()}.xml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(sitting(language, day, items), encoding="utf-8")
    return folder


def test_speeches_held_in_german(tmp_path: Path) -> None:
    found = list(speeches.speeches(write_clone(tmp_path), "20000905"))
    assert [len(speech.source) for speech in found] == [1, 2], "notes of the clerks are no paragraphs"
    assert found[0].parts() == [(found[0].source[0], found[0].target[0])]
    ((source, target),) = found[1].parts()
    assert source == "Ein Satz mit vier Wörtern. Noch ein Satz." and target == found[1].target[0]


def test_a_folder_without_sittings_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert corpus.main([str(tmp_path)]) == 2
    assert "has no sittings under proceedings/xml/de" in capsys.readouterr().err
    assert corpus.main([str(tmp_path), "--workers", "0"]) == 2
    assert "--workers must be at least 1, got 0" in capsys.readouterr().err


# ---- the files ------------------------------------------------------------------------------------------------------


def read(folder: Path, name: str) -> List[str]:
    return gzip.decompress((folder / name).read_bytes()).decode("utf-8").splitlines()


def test_the_same_clone_gives_the_same_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clone = write_clone(tmp_path / "clone")
    for name, workers in (("a", "1"), ("b", "2")):
        assert corpus.main([str(clone), "--out", str(tmp_path / name), "--workers", workers]) == 0
    assert capsys.readouterr().out.count("train: 2 pairs\ndev: 3 pairs\ntest: 3 pairs\n") == 2
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == [f"{name}.{language}.gz" for name in ("dev", "test", "train") for language in ("de", "en")]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    assert [read(tmp_path / "a", f"{name}.de.gz")[0] for name in ("dev", "test")] == [
        "Das war im Jahr 2 so.",
        "Das war im Jahr 3 so.",
    ]
    assert read(tmp_path / "a", "train.en.gz") == ["That was so in the year 1 here.", "That was so in the year 4 here."]


def test_what_is_held_out_is_not_trained_on() -> None:
    held_out, other = ("Das ist ein Satz.", "This is a sentence."), ("Das ist ein anderer.", "This is another one.")
    retold = (held_out[0], "That is a sentence.")
    days = [("19990720", [retold, other]), ("20001031", [held_out, held_out]), ("20001101", [held_out])]
    splits = corpus.divide(days)
    assert splits == {"train": [other], "dev": [held_out], "test": [held_out]}


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("drei Wörter hier", "three words here", True),
        ("zwei Wörter", "two words here", False),
        ("w " * 101, "word " * 40, False),
        ("drei Wörter hier", "three words here and many more of them after that", False),
        ("one two three", "one two three", False),
    ],
)
def test_which_pairs_are_kept(source: str, target: str, kept: bool) -> None:
    assert corpus.is_pair(source.strip(), target.strip()) == kept
