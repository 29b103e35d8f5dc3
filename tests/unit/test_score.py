"""`score_records`: equal to sacreBLEU and the latency functions for all callers; texts; collapsed schedules."""

import json
import math
import random
from pathlib import Path
from typing import List

import pytest
import sacrebleu

from fairseq_milk.analysis.sentences import read_generation
from fairseq_milk.analysis.systems import read_systems
from fairseq_milk.console.errors import UserError
from fairseq_milk.scoring.collapse import HURRYING, WAITING, Reads, count_reads, reads_of
from fairseq_milk.scoring.latency import PAPER, SIMULEVAL, Convention, Latency, corpus_latency
from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.score import MEASURES, Metrics, score_file, score_records
from fairseq_milk.scoring.table import make_result, write_results
from fairseq_milk.scoring.texts import PLAIN, SUBWORDS, TOKENISED, Texts, check_comparable, form_of, texts_of

WORDS = "ein Haus steht am Wald und fällt um".split()


def generation(size: int = 40, accuracy: float = 0.8, wait: int = 3) -> List[Record]:
    records = []
    for i in range(size):
        draw = random.Random(i)
        source = draw.choices(WORDS, k=draw.randint(4, 12))
        hypothesis = [word if draw.random() < accuracy else "nichts" for word in source]
        delays = [min(j + wait, len(source) + 1) for j in range(len(source) + 1)]
        records.append(Record(i, source, hypothesis, delays, source))
    return records


def test_figures_are_those_of_sacrebleu_and_of_the_latency_functions() -> None:
    records = generation()
    score = score_records(list(reversed(records)))
    hypotheses, references = texts_of(records)
    assert references is not None
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    assert score.figure("BLEU") == bleu.corpus_score(hypotheses, [references]).score
    assert score.figure("chrF") == chrf.corpus_score(hypotheses, [references]).score
    assert (score.signature("BLEU"), score.signature("chrF")) == (str(bleu.get_signature()), str(chrf.get_signature()))
    mean = corpus_latency(records).mean
    assert Latency(*(score.figure(name) for name in Latency._fields)) == mean
    assert score.signature("AL") == PAPER.signature()
    expected = f"{bleu.corpus_score(hypotheses, [references]).format()} ({bleu.get_signature()})"
    assert score.format() == f"{expected} | {corpus_latency(records).format()}"


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_has_an_interval(name: str) -> None:
    records = [r._replace(delays=[min(g + r.id % 4, len(r.source) + 1) for g in r.delays]) for r in generation()]
    score, low, high = score_records(records).interval(name)
    assert low < score < high and high - low < score
    assert score_records(records).interval(name, seed=1) != (score, low, high)
    assert all(map(math.isnan, score_records(records).interval(name, resamples=0)[1:]))


def test_published_references_take_the_place_of_those_of_the_records() -> None:
    records = generation(4)
    texts = texts_of(records).hypotheses
    assert score_records(records, texts).figure("BLEU") == pytest.approx(100)
    assert score_records(records[::-1], texts[::-1]).figure("BLEU") == pytest.approx(100), "they follow their records"
    with pytest.raises(ValueError, match="4 sentences, but 3 references"):
        score_records(records, texts[:3])


def test_missing_metrics_are_nan_with_a_reason() -> None:
    records = [record._replace(reference=None) for record in generation(3)]
    score = score_records(records)
    assert math.isnan(score.figure("BLEU")) and score.signature("BLEU") == "" and score.figure("DAL") > 0
    assert score.bleu_string() == "no BLEU: there are no references"
    unmeasured = score_records(records, metrics=Metrics(SIMULEVAL))
    assert unmeasured.no_latency is not None and "reference" in unmeasured.no_latency
    assert all(map(math.isnan, unmeasured.interval("DAL"))) and unmeasured.signature("DAL") == ""
    assert score_records(generation(3), no_latency="lost").latency_string() == "no latency: lost"


def test_metrics_are_restored_from_their_signatures() -> None:
    records = generation()
    for metrics in (Metrics(), Metrics(Convention("word", False, "reference"), "intl", True), Metrics(tokenize="char")):
        score = score_records(records, metrics=metrics)
        assert Metrics.from_signatures(score.signature("BLEU"), score.signature("DAL")) == metrics
    assert Metrics.from_signatures("", "") == Metrics()


OTHER = Metrics(Convention("word", False, "reference"), "char", lowercase=True)


def write_capitals(path: Path) -> str:
    """A generation in subwords whose references are in capitals."""
    records = []
    for record in generation(9):
        subwords = [f"{word}@@" if n % 2 else word for n, word in enumerate(record.source)]
        records.append(record._replace(source=subwords, reference=[word.upper() for word in record.source]))
    path.write_text("".join(json.dumps(record.to_dict()) + "\n" for record in records), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("metrics", [Metrics(), OTHER], ids=["the defaults", "others"])
def test_sentence_bleu_is_that_of_sacrebleu_with_the_settings_of_the_score(metrics: Metrics, tmp_path: Path) -> None:
    score = score_file(write_capitals(tmp_path / "generate-test.jsonl"), metrics)
    hypotheses, references = score.texts
    assert references is not None
    bleu = sacrebleu.BLEU(tokenize=metrics.tokenize, lowercase=metrics.lowercase, effective_order=True)
    expected = [bleu.sentence_score(*pair).score for pair in zip(hypotheses, ([text] for text in references))]
    assert score.sentence_bleu() == expected
    shown = read_generation("milk", score).sentences.values()
    assert [sentence.bleu for sentence in shown] == expected and (max(expected) > 0) == metrics.lowercase
    assert score_records([r._replace(reference=None) for r in score.records]).sentence_bleu() == [None] * 9


def test_sentences_of_a_table_are_scored_as_its_signatures_say(tmp_path: Path) -> None:
    log = write_capitals(tmp_path / "generate-test.jsonl")
    score = score_file(log, OTHER)
    write_results([make_result(score, "milk", log=log)], tmp_path)
    (system,) = read_systems([str(tmp_path / "results.csv")])
    assert system.score().metrics == OTHER and system.score().sentences == score.sentences
    assert system.score().sentences != score_file(log).sentences
    assert system.mean("dal") == system.score().figure("DAL") != score_file(log).figure("DAL")


def test_a_file_is_scored_against_published_references(tmp_path: Path) -> None:
    log, published = write_capitals(tmp_path / "generate-test.jsonl"), tmp_path / "published"
    published.write_text("".join(text + "\n" for text in score_file(log).texts.hypotheses), encoding="utf-8")
    assert score_file(log, references=published).figure("BLEU") == pytest.approx(100)
    published.write_text("one line\n", encoding="utf-8")
    with pytest.raises(UserError, match="published has no line 2: it is not the text of what was decoded"):
        score_file(log, references=published)


@pytest.mark.parametrize("bleu", ["x", "tok:13a", "tok:13a|case", "tok:../13a|case:lc"])
def test_signatures_of_a_damaged_table_are_refused(bleu: str) -> None:
    with pytest.raises(UserError, match="'.*' (is not a signature of BLEU|names a tokeniser)"):
        Metrics.from_signatures(bleu, "")


@pytest.mark.parametrize("latency", ["x", "|version:", "unit:word|eos:no", "unit:word|eos:no|len:x|version:0.1.0"])
def test_invalid_signatures_of_latency_are_refused(latency: str) -> None:
    with pytest.raises(UserError, match="is not a signature of latency"):
        Metrics.from_signatures("", latency)


# ---- texts ----------------------------------------------------------------------------------------------------------


def test_forms_of_text() -> None:
    assert form_of(["a ha@@ us .", "b"]) == SUBWORDS
    assert form_of(["▁a ▁ha us"]) == SUBWORDS
    assert form_of(["a house .", "a dog .", "no"]) == TOKENISED
    assert form_of(["it &apos;s a house", "well @-@ known"]) == TOKENISED
    assert form_of(["A house.", "A dog .", "No.", "Yes."]) == PLAIN
    assert form_of([]) == PLAIN


def test_hypotheses_detokenised_differently_from_their_references() -> None:
    plain, tokenised, subwords = ["A house."] * 3, ["A house ."] * 3, ["A ho@@ use ."] * 3
    said = Texts(tokenised, plain).warning()
    assert said is not None and "hypotheses are tokenised text but the references detokenised text" in said
    said = Texts(subwords, tokenised).warning()
    assert said is not None and "hypotheses are text with subwords left in" in said
    assert "of subwords" in (Texts(subwords, subwords).warning() or "")
    assert "of tokenised text" in (Texts(tokenised, tokenised).warning() or "")
    assert Texts(plain, plain).warning() is None and Texts(plain).warning() is None


def test_subwords_are_not_compared_with_words() -> None:
    plain, tokenised, subwords = (Texts([text] * 3) for text in ("A house.", "A house .", "A ho@@ use ."))
    assert check_comparable(plain, plain, "ab") is None
    said = check_comparable(plain, tokenised, ("a.jsonl", "b.jsonl"))
    assert said is not None and said.startswith("a.jsonl is detokenised text, b.jsonl is tokenised text")
    for pair in ((plain, subwords), (subwords, tokenised)):
        with pytest.raises(ValueError, match="cannot be compared, decode both with --remove-bpe"):
            check_comparable(*pair, "ab")


# ---- collapsed schedules --------------------------------------------------------------------------------------------


def schedule(delays: List[int], src_length: int = 6) -> Reads:
    return count_reads([(delays, src_length, True)] * 5)


@pytest.mark.parametrize(
    "delays, collapse",
    [
        ([1, 1, 1, 1, 6], HURRYING),
        ([1, 1, 1, 3, 6], HURRYING),  # quartiles 1, 1, 1
        ([0, 0, 0, 0, 1], HURRYING),
        ([1, 1, 2, 3, 6], None),
        ([1, 2, 3, 4, 5], None),  # wait-1
        ([6, 6, 6, 6, 6], WAITING),
        ([5, 6, 6, 6, 6], None),
    ],
)
def test_collapsed_schedules(delays: List[int], collapse: str) -> None:
    assert schedule(delays).collapse == collapse


def test_shares_are_of_tokens_and_minimal_reads_leave_out_eos() -> None:
    assert schedule([1, 1, 6, 6, 6]) == Reads(full=0.6, minimal=0.5)
    assert count_reads([([1, 1, 6, 6], 6, False)]) == Reads(full=0.5, minimal=0.5), "cut before its EOS"


def test_sentences_that_leave_no_choice_are_not_judged() -> None:
    assert count_reads([([1, 1], 2, True)] * 9) == count_reads([]) == Reads(0.0, 0.0)
    assert count_reads([([1, 1], 2, True)] * 9 + [([4, 5, 5], 5, True)]).collapse is None


@pytest.mark.parametrize("wait, collapse", [(1, None), (3, None), (99, WAITING)])
def test_the_schedule_of_a_generation(wait: int, collapse: str) -> None:
    assert reads_of(generation(wait=wait)).collapse == collapse


def test_one_long_wait_among_many_does_not_hide_a_collapse() -> None:
    hurried = [r._replace(delays=[1] * len(r.hypothesis) + [len(r.source) + 1]) for r in generation()]
    assert reads_of(hurried).minimal == 1.0 and reads_of([*hurried, *generation(5)]).collapse == HURRYING
