"""`fairseq_milk.load` and what it returns: text, live sessions, schedules and knobs."""

import doctest
import importlib
import threading
from pathlib import Path
from typing import Any, Dict, List

import pytest

import fairseq_milk
from fairseq_milk.cli import stream as stream_verb
from fairseq_milk.console.errors import UserError
from fairseq_milk.generation import DecodingOptions, StreamingSession, load_model
from fairseq_milk.live import READ, WRITE, Session, Translator
from fairseq_milk.live.knobs import SHARED, THRESHOLD, K
from fairseq_milk.live.latency import latency
from fairseq_milk.scoring.latency import PAPER, Schedule, schedule_latency
from fairseq_milk.text.vocabulary import SPECIAL, Vocabulary
from tests.support.stand_in_translators import stand_in
from tests.support.tiny_translators import Plain, Translators


@pytest.fixture(scope="module")
def translator(translators: Translators) -> Translator:
    return fairseq_milk.load(translators.checkpoint("milk"), translators.corpus.bin)


SENTENCE = "der hund lief schnell heim und sah die katze ."


def test_a_translation_is_that_of_the_streaming_session(translators: Translators, translator: Translator) -> None:
    model, task = load_model(str(translators.checkpoint("milk")), str(translators.corpus.bin))
    translation = translator.translate(SENTENCE, max_len_b=10)
    session = StreamingSession(model, DecodingOptions(max_len_b=10))
    source = [task.source_dictionary.index(token) for token in translation.source]
    written = [one for token in [*source, task.source_dictionary.eos()] for one in session.push(token)]
    assert translation.tokens == [task.target_dictionary[one.token] for one in written[:-1]]
    assert translation.delays == [one.delay for one in written]
    assert translation.latency is not None and translation.latency.signature == PAPER.signature()


def test_sessions_streams_and_schedules_agree(translator: Translator) -> None:
    whole = translator.translate(SENTENCE, max_len_b=10)
    session = translator.session(max_len_b=10)
    pieces = [piece for word in SENTENCE.split() for piece in session.push(word)] + session.end()
    assert list(translator.stream(SENTENCE.split(), max_len_b=10)) == pieces
    assert "".join(piece.text for piece in pieces) == whole.text == session.text
    assert session.translation() == whole and session.done and session.ended
    reads = [event.text for event in whole.schedule if event.action == READ]
    writes = [event for event in whole.schedule if event.action == WRITE]
    assert reads == [*SENTENCE.split(), "</s>"]
    assert " ".join(event.text for event in writes) == " ".join(whole.text.split())
    assert [token for event in writes for token in event.tokens] == whole.tokens
    with pytest.raises(ValueError, match="has ended"):
        session.push("hund")


def test_a_stream_takes_a_word_only_when_it_is_needed(plain: Plain) -> None:
    """wait-2: the first piece is there after two words of an endless source."""

    def endless() -> Any:
        while True:
            taken.append("a1")
            yield "a1"

    taken: List[str] = []
    pieces = fairseq_milk.load(plain.checkpoint, plain.bin).stream(endless())
    first, second = next(pieces), next(pieces)
    assert (first.words, second.words, len(taken)) == (2, 3, 3)


def test_knobs_belong_to_a_session(plain: Plain) -> None:
    translator = fairseq_milk.load(plain.checkpoint, plain.bin)
    assert translator.mechanism == "waitk" and translator.knobs["k"].default == 2
    assert "threshold" not in translator.knobs
    sessions: Dict[int, Session] = {k: translator.session(k=k, max_len_b=3) for k in (1, 2, 4)}
    for word in "a1 a2 a3 a4 a5".split():
        for session in sessions.values():
            session.push(word)
    assert {k: session.written[0].delay for k, session in sessions.items()} == {1: 1, 2: 2, 4: 4}


@pytest.mark.parametrize(
    "knobs, sentence",
    [
        ({"threshold": 0.4}, "this model has no knob 'threshold': it has k, min_wait"),
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"k": 1.5}, "k must be a whole number, got 1.5"),
        ({"min_wait": "two"}, "min_wait must be a number|min_wait must be a whole number, got 'two'"),
        ({"early_eos": 1}, "early_eos must be true or false, got 1"),
        ({"max_len_a": float("nan")}, "max_len_a must be at least 0, got nan"),
        ({"max_len_b": 2**40}, "max_len_b must be at most"),
    ],
)
def test_wrong_knobs_are_refused_in_a_sentence(plain: Plain, knobs: Dict[str, Any], sentence: str) -> None:
    translator = fairseq_milk.load(plain.checkpoint, plain.bin)
    with pytest.raises(UserError, match=sentence):
        translator.session(**knobs)


def test_sessions_in_threads(translator: Translator) -> None:
    """Eight threads, each with its own threshold, get what each gets alone."""
    thresholds = [0.1 * n for n in range(1, 9)]
    alone = [translator.translate(SENTENCE, threshold=t, max_len_b=10) for t in thresholds]
    together: List[Any] = [None] * len(thresholds)

    def work(index: int) -> None:
        for _ in range(3):
            together[index] = translator.translate(SENTENCE, threshold=thresholds[index], max_len_b=10)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(thresholds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone and len({tuple(one.delays) for one in alone}) > 1


@pytest.mark.parametrize("delays, x", [([1], 1), ([2, 3, 4, 4], 4), ([1, 1, 1], 7), ([5, 5, 5, 5, 5, 5], 5)])
def test_latency_without_torch_is_that_of_scoring(delays: List[int], x: int) -> None:
    (want,) = schedule_latency([Schedule(delays, x)])
    assert want is not None
    assert latency(delays, x)[:3] == pytest.approx((want.AP, want.AL, want.DAL), abs=1e-12)


def test_bad_paths_are_reported_in_a_sentence(plain: Plain, tmp_path: Path) -> None:
    for path, data, sentence in [
        (tmp_path / "none", None, "there is no exported model or checkpoint"),
        (plain.checkpoint, None, r"is a checkpoint: give the directory of its data too \(--data\)"),
    ]:
        with pytest.raises(UserError, match=sentence):
            fairseq_milk.load(path, data)


def test_a_vocabulary_is_fairseqs_dictionary(plain: Plain) -> None:
    _, task = load_model(str(plain.checkpoint), str(plain.bin))
    ours = Vocabulary(task.source_dictionary.symbols)
    for word in ("a1", "a2", "</s>", "unheard", ""):
        assert ours.index(word) == task.source_dictionary.index(word)
    for name in ("pad", "eos", "unk"):
        assert getattr(ours, name)() == getattr(task.source_dictionary, name)()
    assert ours[10**9] == task.source_dictionary[10**9] and ours.nspecial == task.source_dictionary.nspecial
    with pytest.raises(ValueError, match="begins with"):
        Vocabulary(["a", *SPECIAL])


def test_the_options_of_the_live_commands_are_those_of_generate() -> None:
    from argparse import ArgumentParser

    from fairseq.dataclass.utils import gen_parser_from_dataclass

    from fairseq_milk.generation import DecodingKnobs, DecodingOptions

    ours, fairseqs = ArgumentParser(), ArgumentParser()
    stream_verb.add_arguments(ours)
    gen_parser_from_dataclass(fairseqs, DecodingKnobs())
    options = {option for action in ours._actions for option in action.option_strings}
    assert {option for action in fairseqs._actions for option in action.option_strings} <= options
    assert {"--max-len-a", "--max-len-b"} <= options
    values = {**DecodingOptions()._asdict(), **vars(fairseqs.parse_args([]))}
    names = {"threshold": "head_threshold", "max_writes": "max_consecutive_writes"}
    for knob in (THRESHOLD, *SHARED):
        if knob.name != "early_eos":
            assert values[names.get(knob.name, knob.name)] == knob.default, knob.name
    assert values["decode_k"] is None and K.low == 1


MODULES = ("live", "live.knobs", "live.latency", "live.session", "live.translator", "text.vocabulary", "text.words")


@pytest.mark.parametrize("module", MODULES)
def test_doctests(module: str) -> None:
    """The doctests use a toy model as `translator`."""
    found = doctest.testmod(
        importlib.import_module(f"fairseq_milk.{module}"), extraglobs={"translator": stand_in("waitk")}
    )
    assert found.failed == 0
