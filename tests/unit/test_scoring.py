"""Latency: hand-worked sentences under every convention, words from subwords, and the scorer that prints it all."""

import math
import subprocess
import sys
from argparse import Namespace
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import List, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_milk.scoring import latency
from fairseq_milk.scoring.latency import (
    CONVENTIONS,
    PAPER,
    SIMULEVAL,
    SIMULEVAL_1_0,
    Convention,
    Latency,
    Schedule,
    corpus_latency,
    schedule_latency,
    sentence_latency,
    to_convention,
)
from fairseq_milk.scoring.records import Markers, Record, find_markers
from fairseq_milk.text.subwords import BPE, SENTENCEPIECE, join_words, word_starts

# delays, |x| -> AL, DAL, AP.  The first two are the paper's; the others were worked out with fractions.
GOLDEN = [
    ([3, 4, 4, 4], 4, 3, 3, 0.9375),
    ([1, 2], 2, 1, 1, 0.75),
    ([6, 6, 6, 6], 6, 6, 6, 1),
    ([1, 1, 2, 3, 5, 7, 7, 9], 9, Fraction(7, 16), Fraction(73, 64), Fraction(35, 72)),
    ([5, 7, 9], 9, 4, 5, Fraction(7, 9)),
    ([3, 4, 4, 4, 4, 4, 4, 4], 4, 3.25, 3.4375, 0.96875),
    ([3, 4, 5, 6], 8, 1.5, 3, 0.5625),
    ([1, 1, 1, 4], 4, 0.25, 1, 0.4375),
    ([1, 4, 4, 4, 5, 6], 6, 1.5, Fraction(8, 3), Fraction(2, 3)),
    ([2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10], 10, Fraction(83, 55), 2, 0.6),
]


def measure(delays: Sequence[int], src_length: int, ref_length: int = 0, length: str = "hypothesis") -> Latency:
    (result,) = schedule_latency([Schedule(delays, src_length, ref_length or None)], length)
    assert result is not None
    return result


@pytest.mark.parametrize(("delays", "src_length", "al", "dal", "ap"), GOLDEN)
def test_golden(delays: List[int], src_length: int, al: float, dal: float, ap: float) -> None:
    result = measure(delays, src_length)
    assert (result.AL, result.DAL, result.AP) == pytest.approx((float(al), float(dal), float(ap)), abs=1e-12)
    assert result.initial == delays[0]
    assert result.LAAL == pytest.approx(result.AL)  # without a reference


def test_golden_all_at_once_equals_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules = [Schedule(delays, x, 1 + x % 7) for delays, x, *_ in GOLDEN] * 3
    together = schedule_latency(schedules, "reference")
    monkeypatch.setattr(latency, "BATCH", 4)
    assert schedule_latency(schedules, "reference") == together
    assert [schedule_latency([s], "reference")[0] for s in schedules] == together


def test_the_length_of_the_reference() -> None:
    """|x| = 4, hypothesis 4, reference 8: gamma = 2, tau = 2, so AL = (3 + 4 - 1/2) / 2; DAL stays."""
    result = measure([3, 4, 4, 4], 4, ref_length=8, length="reference")
    assert result == pytest.approx(Latency(AP=15 / 32, AL=3.25, DAL=3, LAAL=3.25, CW=2, initial=3))


def test_laal_takes_the_longer_length_under_either_convention() -> None:
    """Hypothesis 4, reference 2: AL with gamma = 1/2 falls to (3 + 4 - 2) / 2; LAAL keeps gamma = 1."""
    assert measure([3, 4, 4, 4], 4, ref_length=2, length="reference").AL == pytest.approx(2.5)
    assert measure([3, 4, 4, 4], 4, ref_length=2, length="reference").LAAL == pytest.approx(3)
    assert measure([3, 4, 4, 4], 4, ref_length=8).LAAL == pytest.approx(3.25)
    assert measure([3, 4, 4, 4], 4, ref_length=8).AL == pytest.approx(3)


@pytest.mark.parametrize(
    ("delays", "expected"),
    [
        ([3, 4, 4, 5], Fraction(5, 3)),  # runs of 3, 1, 1
        ([6, 6, 6], 6),
        ([1, 2, 3], 1),
        ([2], 2),
        ([0, 0, 2], 2),  # written before anything was read
        ([0, 0], 0),
        ([4, 2, 4, 6], 3),  # a delay that falls is no READ
    ],
)
def test_consecutive_wait(delays: List[int], expected: Fraction) -> None:
    assert measure(delays, 6).CW == pytest.approx(float(expected))


# Five source subwords, three words; "ge@@" is read with the word that it begins.
SENTENCE = Record(
    id=7,
    source="ich ha@@ be ge@@ sehen".split(),
    hypothesis="I ha@@ ve se@@ en it".split(),
    delays=[1, 2, 3, 3, 4, 6, 6],
    reference="I saw it al@@ l".split(),
)
PIECES = SENTENCE._replace(
    source="▁ich ▁ha be ▁ge sehen".split(),
    hypothesis="▁I ▁ha ve ▁se en ▁it".split(),
    reference="▁I ▁saw ▁it ▁al l".split(),
)


@pytest.mark.parametrize("record", [SENTENCE, PIECES])
def test_conventions_by_hand(record: Record) -> None:
    expected = {
        # the model's own tokens
        Convention("subword", eos=True): Schedule([1, 2, 3, 3, 4, 6, 6], 6, 6),
        Convention("subword", eos=False): Schedule([1, 2, 3, 3, 4, 5], 5, 5),
        # I 1 -> ich; have 3 -> ich habe; seen 4 -> ich habe ge|sehen; it 6 -> everything and EOS; EOS 6
        Convention("word", eos=True): Schedule([1, 2, 3, 4, 4], 4, 5),
        Convention("word", eos=False): Schedule([1, 2, 3, 3], 3, 4),
    }
    for convention, schedule in expected.items():
        assert to_convention(record, convention) == schedule


def test_presets_by_hand() -> None:
    paper, old, new = (sentence_latency([SENTENCE], c)[0] for c in (PAPER, SIMULEVAL_1_0, SIMULEVAL))
    assert paper == pytest.approx(measure([1, 2, 3, 3, 4, 6, 6], 6, ref_length=6))
    assert old == pytest.approx(measure([1, 2, 3, 4, 4], 4, ref_length=5))
    assert new == pytest.approx(measure([1, 2, 3, 3], 3, ref_length=4, length="reference"))
    # SimulEval: gamma = 4/3, tau = 3: (1 + (2 - 3/4) + (3 - 6/4)) / 3
    assert new is not None and new.AL == pytest.approx(1.25) and new.AP == pytest.approx(9 / 12)


def test_a_delay_in_words_counts_the_word_that_was_begun() -> None:
    """SimulEval sends whole words: to read "ha@@" the word "habe" must have been sent."""
    record = SENTENCE._replace(hypothesis=["I"], delays=[2, 2], reference=None)
    assert to_convention(record, Convention("word", eos=False)).delays == [2]


def test_marks_are_found_over_the_corpus() -> None:
    """A sentence without a mark still consists of subwords if others have marks."""
    short = PIECES._replace(hypothesis=["lo", "ver"], delays=[1, 1, 1])
    assert find_markers([PIECES, short]) == Markers(SENTENCEPIECE, SENTENCEPIECE)
    assert to_convention(short, SIMULEVAL, find_markers([PIECES, short])).delays == [1]
    assert find_markers([SENTENCE]) == Markers(BPE, BPE)
    plain = Record(0, ["a", "b"], ["c"], [1, 3])
    assert find_markers([plain]) == Markers(None, None)
    for odd in ("▁", "x@@"):
        words = plain._replace(source=["a"] * 2000 + [odd], hypothesis=["c"] * 2000 + [odd])
        assert find_markers([words]) == Markers(None, None)
    assert to_convention(plain, SIMULEVAL_1_0) == Schedule([1, 3], 3, None)


@given(st.lists(st.sampled_from(["a", "b@@", "c"])), st.lists(st.sampled_from(["▁", "▁a", "b"])))
def test_words_are_those_of_the_text(bpe: List[str], pieces: List[str]) -> None:
    for tokens, marker in ((bpe, BPE), (pieces, SENTENCEPIECE), (bpe, None)):
        assert sum(word_starts(tokens, marker)) == len(join_words(tokens, marker).split())


@given(st.data())
def test_a_schedule_in_words_is_a_schedule(data: st.DataObject) -> None:
    """Lengths are those of the text, delays stay in range and in order, and a full read stays a full read."""
    tokens = st.lists(st.sampled_from(["a", "b@@"]), min_size=1, max_size=8)
    source, hypothesis = data.draw(tokens), data.draw(tokens)
    size = len(hypothesis) + 1
    delays = sorted(data.draw(st.lists(st.integers(1, len(source) + 1), min_size=size, max_size=size)))
    record = Record(0, source, hypothesis, delays)
    for eos in (True, False):
        schedule = to_convention(record, Convention("word", eos), Markers(BPE, BPE))
        assert schedule.src_length == len(join_words(source, BPE).split()) + eos
        assert len(schedule.delays) == len(join_words(hypothesis, BPE).split()) + eos
        assert list(schedule.delays) == sorted(schedule.delays)
        assert 1 <= min(schedule.delays) and max(schedule.delays) <= schedule.src_length
        full = to_convention(record._replace(delays=[len(source) + 1] * size), Convention("word", eos))
        assert set(full.delays) == {full.src_length}


def test_degenerate_sentences() -> None:
    one = Record(0, ["a"], ["b"], [1, 2], ["c"])
    assert sentence_latency([one], SIMULEVAL)[0] == Latency(AP=1, AL=1, DAL=1, LAAL=1, CW=1, initial=1)
    only_eos = Record(1, ["a", "b"], [], [3], ["c"])
    assert sentence_latency([only_eos], PAPER)[0] == Latency(AP=1, AL=3, DAL=3, LAAL=3, CW=3, initial=3)
    assert sentence_latency([only_eos], SIMULEVAL) == [None]
    nothing = Record(2, ["a"], [], [], ["c"])
    assert sentence_latency([nothing], PAPER) == [None]
    empty_source = Record(3, [], ["b"], [1, 1], ["c"])
    assert sentence_latency([empty_source], SIMULEVAL) == [None]
    assert sentence_latency([empty_source], PAPER)[0] == pytest.approx(Latency(1, 1, 1, 1, 1, 1))
    cut = Record(4, ["a", "b", "c"], ["x", "y"], [1, 2], [])  # no EOS, source never exhausted, empty reference
    assert not cut.eos_written
    assert to_convention(cut, PAPER) == Schedule([1, 2], 4, 1)
    assert sentence_latency([cut], SIMULEVAL)[0] == pytest.approx(Latency(1, (1 + 2 - 3) / 2, 1, 0.75, 1, 1))


def test_corpus_is_the_unweighted_mean_of_what_can_be_measured() -> None:
    records = [SENTENCE, Record(1, ["a"], [], [2], ["b"]), Record(2, ["a"], ["b"], [1, 2], ["c"])]
    corpus = corpus_latency(records, SIMULEVAL)
    assert (corpus.measured, corpus.skipped, corpus.convention) == (2, 1, SIMULEVAL)
    assert corpus.mean.AL == pytest.approx((1.25 + 1) / 2)
    assert corpus.format() == f"AP 0.875 AL 1.12 DAL 1.16 ({SIMULEVAL.signature()}, 1 skipped)"
    with pytest.raises(ValueError, match="no sentence has both"):
        corpus_latency([records[1]], SIMULEVAL)


def test_a_missing_reference_is_not_replaced_silently() -> None:
    record = SENTENCE._replace(reference=None)
    with pytest.raises(ValueError, match="reference"):
        corpus_latency([SENTENCE, record], SIMULEVAL)
    assert math.isfinite(corpus_latency([SENTENCE, record], PAPER).mean.LAAL)


def test_signatures() -> None:
    assert PAPER.signature() == "unit:subword|eos:yes|len:hyp|version:0.1.0"
    assert SIMULEVAL.signature() == "unit:word|eos:no|len:ref|version:0.1.0"
    assert len({convention.signature() for convention in CONVENTIONS.values()}) == 3
    with pytest.raises(ValueError, match="unit of latency"):
        Convention("char")
    with pytest.raises(ValueError, match="length of latency"):
        Convention(length="source")


@pytest.mark.parametrize("delays", [[1, 2], [1, 2, 3, 3, 4, 5, 6, 6], [1, 2, 3, 3, 4, 6, 7], [-1, 2, 3, 3, 4, 6, 6]])
def test_delays_that_do_not_fit_are_refused(delays: List[int]) -> None:
    assert SENTENCE.check() is SENTENCE
    with pytest.raises(ValueError, match="sentence 7 has"):
        SENTENCE._replace(delays=delays).check()


def test_a_record_is_restored_from_its_dictionary() -> None:
    record = SENTENCE._replace(text="I have seen it", attention=[[0.5, 0.5]] * 7)
    assert Record.from_dict({**record.to_dict(), "DAL": 3.0}) == record
    assert set(SENTENCE.to_dict()) == {"id", "source", "hypothesis", "reference", "delays"}
    assert SENTENCE._replace(reference=None).to_dict()["reference"] is None


@pytest.mark.slow  # imports torch
def test_functions_need_torch_alone() -> None:
    package = Path(latency.__file__).parents[1]
    code = (
        "import sys, types; package = types.ModuleType('fairseq_milk'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules.update({'fairseq_milk': package, 'fairseq': None, 'sacrebleu': None, 'numpy': None})\n"
        "import fairseq_milk.scoring.latency\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(package)], check=True)


def test_a_recorder_scores_what_it_was_given_once() -> None:
    from fairseq_milk.scoring.recorder import Recorder

    recorder, other = Recorder(), Recorder()
    recorder.add(SENTENCE)
    other.add(PIECES)
    assert (recorder.records, other.records) == ([SENTENCE], [PIECES])
    score = recorder.score()
    assert recorder.score() is score and score.latency == corpus_latency([SENTENCE], PAPER)
    recorder.add(PIECES._replace(id=3))
    assert recorder.score() is not score
    assert [record.id for record in recorder.score().records] == [3, 7], "in the order of the ids"


def build_scorer(*options: str):  # type: ignore[no-untyped-def]
    """The scorer as fairseq-generate builds it from its command line."""
    from fairseq import scoring
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.options import get_generation_parser, parse_args_and_arch

    import fairseq_milk.scoring.scorer  # noqa: F401

    parser = get_generation_parser()
    command = ["data", "--path", "model.pt", "--scoring", "simultaneous", *options]
    args: Namespace = parse_args_and_arch(parser, input_args=command)
    return scoring.build_scorer(convert_namespace_to_omegaconf(args).scoring, None)


def test_scorer_prints_two_signatures() -> None:
    import sacrebleu

    scorer = build_scorer()
    scorer.recorder.add(SENTENCE._replace(text="The cat sat on a mat.", reference_text="The cat sat on the mat."))
    scorer.add_string("The cat sat on the mat.", "The cat sat on a mat.")
    bleu = sacrebleu.BLEU()
    expected = bleu.corpus_score(["The cat sat on a mat."], [["The cat sat on the mat."]])
    assert scorer.score() == expected.score
    assert scorer.result_string() == (
        f"{expected.format()} ({bleu.get_signature()}) | {corpus_latency([SENTENCE], PAPER).format()}"
    )
    assert "case:mixed" in scorer.result_string() and "tok:13a" in scorer.result_string()


def test_scorer_takes_its_convention_from_the_command_line() -> None:
    scorer = build_scorer("--latency-unit", "word", "--latency-eos", "no", "--latency-length", "reference")
    assert scorer.recorder.metrics.convention == SIMULEVAL
    assert build_scorer().recorder.metrics.convention == PAPER
    scorer = build_scorer("--sacrebleu-tokenizer", "intl", "--sacrebleu-lowercase")
    scorer.add_string("a", "a")
    assert "case:lc|eff:no|tok:intl" in scorer.result_string()


def test_two_generations_in_one_process_do_not_mix() -> None:
    from fairseq_milk.scoring.recorder import Recorder

    mine = Recorder()
    mine.offer()
    first = build_scorer()
    assert first.recorder is mine and mine.has_scorer
    assert first.result_string() == "no sentence was scored"
    mine.add(SENTENCE)
    first.add_string("a", "a")
    second = build_scorer()
    second.add_string("a", "a")
    assert "no latency" in second.result_string(), "a generation of another task"
    second.recorder.add(PIECES)
    assert (first.recorder.records, second.recorder.records) == ([SENTENCE], [PIECES])


def test_records_that_no_scorer_took_are_not_those_of_the_next_generation() -> None:
    """As with --scoring bleu, and then --scoring simultaneous with a task of fairseq in the same process."""
    from fairseq_milk.generation import DecodingKnobs
    from fairseq_milk.host.batches import Ending
    from fairseq_milk.tasks.recording import LIMITS, Recording

    knobs = dict.fromkeys([*(knob.name for knob in fields(DecodingKnobs)), "decode_precision", "post_process", "path"])
    cfg = SimpleNamespace(**knobs, write_attention=False, gen_subset="test", results_path=None)
    recording = Recording(cfg, None, None)
    recording.begin(None, SimpleNamespace(**dict.fromkeys(LIMITS)))
    recording.recorder.add(SENTENCE)
    assert list(Ending(["a batch", "another"], recording.end)) == ["a batch", "another"]
    later = build_scorer()
    later.add_string("a", "a")
    assert later.recorder is not recording.recorder and "no latency" in later.result_string()
