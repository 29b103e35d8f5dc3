"""Late German words, and how long systems wait for them: on sentences whose figures can be written down."""

import json
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest

from examples.europarl_de_en import schedules, verbs, waiting_report, word_alignment
from examples.europarl_de_en.verbs import late_words
from examples.europarl_de_en.waiting import measure, sample
from fairseq_milk.scoring.records import Record

SENTENCE = "Ich weiß , dass wir das heute dis@@ kutiert haben .".split()
TAGS = "PPER VV(FIN) $, KOUS PPER PDS ADV VV(PP) VA(FIN) $.".split()
HYPOTHESIS = "I know that we have dis@@ cussed it today .".split()
LINKS = frozenset({(0, 0), (1, 1), (3, 2), (4, 3), (8, 4), (7, 5), (5, 6), (6, 7), (9, 8)})
# source words end after tokens 1, 2, 3, 4, 5, 6, 7, 9, 10, 11; EOS is the twelfth
PATIENT = Record(0, SENTENCE, HYPOTHESIS, [1, 2, 4, 5, 10, 10, 10, 10, 10, 11, 12])
EAGER = Record(0, SENTENCE, HYPOTHESIS, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])


def tag(words: Sequence[str]) -> List[str]:
    assert list(words) == "Ich weiß , dass wir das heute diskutiert haben .".split()
    return TAGS


@pytest.mark.parametrize(
    ("tags", "late"),
    [
        (TAGS, {7, 8}),
        ("ART NN VV(FIN) PDAT NN ADV PTKVZ $.".split(), {6}),  # lehnt ... ab
        ("PPER VV(FIN) $.".split(), set()),  # Er kommt.
        ("KOUS PPER NN VV(PP) VA(FIN) KON KOUS PPER VV(PP) VA(INF) VM(FIN) $.".split(), {3, 4, 8, 9, 10}),
        ("PDAT NN VV(PP) PTKZU VA(INF)".split(), {2, 3, 4}),  # diesen Anschlag begangen zu haben
        ([], set()),
    ],
)
def test_late_words(tags: List[str], late: Any) -> None:
    assert late_words(tags) == late


def means(record: Record) -> Dict[str, List[float]]:
    sentences = measure([record] * 2, [LINKS] * 2, tag)
    return {
        what: [sample(sentences, what, group).corpus_score() for group in (True, False, None)]
        for what in ("lag", "reads", "early", "follows")
    }


def test_the_four_measures_by_hand() -> None:
    """gamma = 11 / 12 with EOS; the late words are have and discussed, target tokens 5 and 6."""
    patient, eager = means(PATIENT), means(EAGER)
    even = 12 / 11
    late = (10 - 4 * even + 10 - 5 * even) / 2
    other = sum(g - i * even for g, i in ((1, 0), (2, 1), (4, 2), (5, 3), (10, 7), (10, 8), (11, 9))) / 7
    assert patient["lag"] == pytest.approx([late, other, late - other])
    assert patient["reads"] == pytest.approx([5 / 2, 6 / 7, 5 / 2 - 6 / 7])  # "it" and "today" read nothing new
    assert patient["early"] == [0, 0, 0]
    # haben (g = 10) is followed by have, discussed, it, today; diskutiert by nothing
    assert patient["follows"] == pytest.approx([4 / 2, 5 / 8, 4 / 2 - 5 / 8])
    assert eager["early"] == [1, 0, 1], "have and discussed were written before haben and diskutiert were read"
    assert eager["reads"][0] == 1 and eager["follows"][0] == pytest.approx((1 + 1) / 2)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(verbs, "tag", tag)
    monkeypatch.setattr(word_alignment, "align", lambda pairs, more: [LINKS] * len(pairs))
    monkeypatch.setattr(waiting_report, "FEWEST", 1)
    for name, record in (("milk", PATIENT), ("wait-k", EAGER)):
        lines = [json.dumps(record._replace(id=n).to_dict()) for n in range(20)]
        (tmp_path / f"{name}=1.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for language in ("de", "en"):
        (tmp_path / f"train.{language}").write_text("a b\n")
    systems = [f"{name}={tmp_path / name}=1.jsonl" for name in ("milk", "wait-k")]
    command = [*systems, "--bitext", str(tmp_path / "train"), "--out", str(tmp_path / "waiting.png")]
    assert waiting_report.main(command) == 0
    said = capsys.readouterr().out
    assert "| milk | early | 0.00 | 0.00 | +0.00 (+0.00 to +0.00) |" in said
    assert "| wait-k | early | 1.00 | 0.00 | +1.00 (+1.00 to +1.00) |" in said
    assert "| VV(PP) | 0.0% | 100.0% | 20 |" in said
    assert (tmp_path / "waiting.png").read_bytes().startswith(b"\x89PNG")

    assert waiting_report.main([str(tmp_path / "milk.jsonl"), *command[2:]]) == 2
    assert "must be NAME=FILE" in capsys.readouterr().err
    (tmp_path / "other.jsonl").write_text(json.dumps(EAGER._replace(source=["a"] * 12).to_dict()))
    assert waiting_report.main([systems[0], f"b={tmp_path / 'other.jsonl'}", *command[2:]]) == 2
    assert "translated different sentences" in capsys.readouterr().err


def test_a_text_under_wait_k(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verbs, "tag", tag)
    monkeypatch.setattr(word_alignment, "align", lambda pairs, more: [LINKS] * len(pairs))
    words = {"de": "Ich weiß , dass wir das heute diskutiert haben .", "en": "I know that we have discussed it today ."}
    for language, text in words.items():
        (tmp_path / f"dev.{language}").write_text(f"{text}\n" * 3, encoding="utf-8")
    stem = str(tmp_path / "dev")
    assert waiting_report.under_wait_k([(["a", "b"], ["c", "d", "e"])], 2)[0].delays == [2, 3, 3, 3]
    assert waiting_report.main(["--text", stem, "--wait-k", "1", "5", "--bitext", stem]) == 0
    said = capsys.readouterr().out
    assert "| wait-1 | early | 1.00 |" in said and "| wait-5 | early | 0.00 | 0.00 |" in said
    assert waiting_report.main(["--bitext", stem]) == 2
    assert "there is nothing to measure" in capsys.readouterr().err


def test_links_and_text_to_learn_them_from(tmp_path: Path) -> None:
    assert word_alignment.read_links("0-0 1-12") == {(0, 0), (1, 12)} and not word_alignment.read_links("")
    for language in ("de", "en"):
        (tmp_path / f"t.{language}").write_text("".join(f"{language} {n}\n" for n in range(10)))
    found = word_alignment.read_bitext(tmp_path / "t", ("de", "en"), 3)
    assert found == [(["de", n], ["en", n]) for n in ("0", "3", "6")]


def test_glossed_schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(schedules, "GLOSSES", {0: "I know , that we it today discussed have .", 1: "too few"})
    panel = schedules.panel([PATIENT], 0, "milk")
    assert panel.source[6:10] == ["heute (today)", "dis@@ (discussed)", "kutiert", "haben (have)"]
    assert panel.source[2] == "," and panel.source[-1] == schedules.EOS and panel.delays == PATIENT.delays
    (tmp_path / "milk.jsonl").write_text(
        json.dumps(PATIENT.to_dict()) + "\n" + json.dumps(EAGER._replace(id=1).to_dict())
    )
    command = [f"milk={tmp_path / 'milk.jsonl'}", "--out", str(tmp_path / "pictures"), "--sentences"]
    assert schedules.main([*command, "0"]) == 0
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["schedule-0.png"]
    assert schedules.main([*command, "1"]) == 2
    assert "sentence 1 has 10 words, but its gloss has 2" in capsys.readouterr().err
