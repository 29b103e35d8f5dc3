"""Teacher forcing in hard mode, the batched generator and the streaming session: the same tokens and delays.

The models are random, with weights large enough that their schedules depend on what they read.
"""

import random
from typing import Any, Dict, List, Sequence
from unittest import mock

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_milk.generation import (
    AlignedBeamSearch,
    DecodingOptions,
    SimultaneousGenerator,
    StreamingSession,
    full_read,
    translate,
)
from fairseq_milk.models.milk_rnmt import MilkRNMT
from tests.reliability.three_ways import EOS, LIMITS, PAD, Output, batched, collate, streamed, teacher_forced
from tests.support.sixth_mechanism import SIXTH, mechanism
from tests.support.tiny_models import FIVE, LEARNED, STREAMING
from tests.support.tiny_models import model as tiny_model

WORDS = 20
UNK = 3
WIDE = DecodingOptions(max_len_a=1.5, max_len_b=12)  # the length limit changes the schedule, but not before 12 tokens


def build(attention: str, eos_bias: float = 1.0, **changes: Any) -> MilkRNMT:
    """A model with residual connections that sometimes predicts EOS."""
    deep: Dict[str, Any] = dict(encoder_layers=3, decoder_layers=3, spread=0.7, **changes)
    with mechanism(attention) as name:
        model = tiny_model(WORDS, attention=name, **deep).eval()
    with torch.no_grad():
        model.decoder.output.bias[EOS] += eos_bias
        if model.decoder.attention.learned:
            model.decoder.attention.head.g.fill_(3.0)  # type: ignore[union-attr, operator]
    return model


def sentences(count: int, longest: int = 9, seed: int = 0) -> List[List[int]]:
    """Random sentences with EOS; some are empty, some have an unknown word."""
    draw = random.Random(seed)
    return [[draw.randrange(UNK, 4 + WORDS) for _ in range(draw.randint(0, longest))] + [EOS] for _ in range(count)]


@pytest.fixture(scope="module", params=[*FIVE, *SIXTH])
def model(request: Any) -> MilkRNMT:
    torch.manual_seed(5)
    return build(request.param)


# ---- one schedule, three ways to run it --------------------------------------------------------------------------


def test_the_three_ways_agree(model: MilkRNMT) -> None:
    sources = sentences(64)
    whole = batched(model, sources, 64, WIDE)
    assert batched(model, sources, 7, WIDE) == whole
    assert batched(model, sources[:16], 1, WIDE) == whole[:16]
    for source, output in zip(sources[:16], whole):
        assert streamed(model, source, WIDE) == output
        tokens, delays = teacher_forced(model, source, output.tokens[:12])
        assert output.tokens[:12] == tokens and output.delays[:12] == delays


def test_the_outputs_are_worth_comparing(model: MilkRNMT) -> None:
    """There are short and long outputs, early and late writes, and EOS before and after the end and at the limit."""
    sources = sentences(64)
    outputs = batched(model, sources, 64, WIDE)
    assert len({len(output.tokens) for output in outputs}) > 8
    assert len({token for output in outputs for token in output.tokens}) > 12
    assert any(len(output.tokens) > WIDE.max_len_a * len(source) + 12 for source, output in zip(sources, outputs))
    if model.decoder.attention.learned:
        assert len({output.delays[0] for output in outputs}) > 3
        assert any(output.delays[-1] < len(source) for source, output in zip(sources, outputs))


def test_order_and_padding_do_not_matter(model: MilkRNMT) -> None:
    sources = sentences(40, seed=1)
    whole = batched(model, sources, 40)
    order = list(range(40))
    random.Random(3).shuffle(order)
    for left in (True, False):
        shuffled = batched(model, [sources[row] for row in order], 11, left=left)
        assert shuffled == [whole[row] for row in order]


def test_a_cut_source_gives_a_prefix(model: MilkRNMT) -> None:
    """A source cut at any position gives exactly what had been written by then."""
    for source in sentences(8, seed=2):
        full = streamed(model, source)
        session, written = StreamingSession(model, LIMITS), []
        for read, token in enumerate(source, start=1):
            written += [w.token for w in session.push(token)]
            assert written == [token for token, delay in zip(full.tokens, full.delays) if delay <= read]


@pytest.mark.parametrize("knobs", [{}, {"min_wait": 3, "max_writes": 1}, {"early_eos": False}])
def test_one_sentence_is_a_batch_of_one(model: MilkRNMT, knobs: Dict[str, Any]) -> None:
    """The session has its own class for the target of one sentence, which decides as that of batches does."""
    options = LIMITS._replace(**knobs)
    for source in sentences(6, seed=11):
        own = streamed(model, source, options)
        with mock.patch.object(model, "sentence", lambda room: model.target(1, room)):
            assert streamed(model, source, options) == own


def test_what_is_not_read_does_not_matter(model: MilkRNMT) -> None:
    """In a batch, which holds the whole source, another ending of the source does not change earlier output."""
    draw = random.Random(4)
    for source in [s for s in sentences(30, seed=3) if len(s) > 3][:6]:
        cuts = range(1, len(source) - 1)
        others = [source[:cut] + [draw.randrange(4, 4 + WORDS) for _ in source[cut:-1]] + [EOS] for cut in cuts]
        full, *changed = batched(model, [source, *others], 64)
        for cut, output in zip(cuts, changed):
            known = sum(delay <= cut for delay in full.delays)
            assert output.tokens[:known] == full.tokens[:known] and output.delays[:known] == full.delays[:known]


def test_nothing_is_handed_over_before_its_time(model: MilkRNMT) -> None:
    """When a session calls its attention, the memory holds nothing beyond the tokens read."""
    attention, seen = model.decoder.attention, []
    asked = {name: getattr(attention, name) for name in ("seek", "attend", "seek_one", "look_back")}

    def spy(name: str) -> Any:
        def call(queries: Any, memory: Any, *args: Any) -> Any:
            unread = torch.arange(memory.h.size(1)) >= memory.lengths.unsqueeze(1)
            assert not memory.h[unread].any() and not any(keys[unread].any() for keys in memory.keys.values())
            seen.append(int(memory.lengths.max()))
            return asked[name](queries, memory, *args)

        return call

    with mock.patch.multiple(attention, **{name: spy(name) for name in asked}):
        session = StreamingSession(model, LIMITS)
        for pushed, token in enumerate(sentences(1, seed=9)[0], start=1):
            seen.clear()
            session.push(token)
            assert session.done or max(seen) == pushed


def test_a_target_token_is_projected_once_however_often_it_asks(model: MilkRNMT) -> None:
    attention = model.decoder.attention
    with mock.patch.object(attention, "queries", wraps=attention.queries) as asked:
        (hypothesis,) = translate(model, torch.tensor([sentences(1)[0]]), LIMITS)
    assert asked.call_count == len(hypothesis.tokens) + 1


# ---- knobs -------------------------------------------------------------------------------------------------------

KNOBS = {
    "min_wait": LIMITS._replace(min_wait=4),
    "max_writes": LIMITS._replace(max_writes=2),
    "late_eos": LIMITS._replace(early_eos=False),
    "all": LIMITS._replace(min_wait=2, max_writes=1, early_eos=False, min_len=3),
    "long": LIMITS._replace(min_len=9),
    "short": LIMITS._replace(max_len_a=0.0, max_len_b=3),
}


@pytest.mark.parametrize("name", KNOBS)
def test_knobs_turn_the_same_way_in_batch_and_stream(model: MilkRNMT, name: str) -> None:
    options, sources = KNOBS[name], sentences(12)
    outputs = batched(model, sources, 12, options)
    assert [streamed(model, source, options) for source in sources] == outputs
    for source, output in zip(sources, outputs):
        check_knobs_of(options, len(source), output)


def check_knobs_of(options: DecodingOptions, src_length: int, output: Output) -> None:
    """Each knob has its documented effect."""
    assert output.delays[0] >= min(options.min_wait, src_length)
    assert output.delays == sorted(output.delays) and output.delays[-1] <= src_length
    if options.max_writes:
        before_the_end = [delay for delay in output.delays if delay < src_length]
        assert all(before_the_end.count(delay) <= options.max_writes for delay in before_the_end)
    if not options.early_eos:
        assert output.delays[-1] == src_length
    assert EOS not in output.tokens[:-1] and output.tokens[-1] == EOS and PAD not in output.tokens
    longest = int(options.max_len_a * src_length + options.max_len_b)
    assert options.min_len <= len(output.tokens) - 1 <= max(longest, options.min_len)


def test_late_eos_reads_on_where_early_eos_stops() -> None:
    torch.manual_seed(5)
    model, sources = build("milk"), sentences(64)
    early, late = batched(model, sources, 64), batched(model, sources, 64, LIMITS._replace(early_eos=False))
    changed = [b for b, source in enumerate(sources) if early[b].delays[-1] < len(source)]
    assert changed
    for b, source in enumerate(sources):
        assert late[b].delays[-1] == len(source)
        assert (early[b] == late[b]) == (b not in changed)
        known = len(early[b].tokens) - 1
        assert late[b].tokens[:known] == early[b].tokens[:known]


@pytest.mark.parametrize("attention", LEARNED)
def test_the_threshold_runs_from_at_once_to_never(attention: str) -> None:
    torch.manual_seed(5)
    model, sources = build(attention), sentences(20)
    stop: Any = model.decoder.attention.stop
    stop.threshold = 1e-6
    for output in batched(model, sources, 20, DecodingOptions(max_len_a=0.0, max_len_b=12)):
        assert set(output.delays[:12]) == {1}
    stop.threshold = 1 - 1e-6
    for source, output in zip(sources, batched(model, sources, 20)):
        assert set(output.delays) == {len(source)}
    stop.threshold = 0.7
    assert [streamed(model, source) for source in sources] == batched(model, sources, 20)


@pytest.mark.parametrize("attention", LEARNED)
def test_a_run_of_writes_ends_and_begins_again(attention: str) -> None:
    """--max-consecutive-writes 2: a head that would write everything at once reads after every two tokens."""
    model = build(attention, eos_bias=-1e4)
    model.decoder.attention.stop.threshold = 1e-6  # type: ignore[assignment]
    (output,) = batched(model, [[5, 6, 7, 8, EOS]], 1, DecodingOptions(max_writes=2, max_len_a=0.0, max_len_b=12))
    assert output.delays[:12] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5]


@pytest.mark.parametrize("k, rate", [(1, 1.0), (3, 1.0), (2, 0.5), (2, 1.3), (40, 1.0)])
def test_wait_k_can_be_decoded_with_any_k(k: int, rate: float) -> None:
    torch.manual_seed(5)
    model, sources = build("waitk", emission_rate=rate), sentences(20)
    model.decoder.attention.stop.k = k  # type: ignore[assignment]
    for source, output in zip(sources, batched(model, sources, 20)):
        assert output.delays == [min(k + int(i / rate + 1e-9), len(source)) for i in range(len(output.tokens))]
        assert streamed(model, source) == output


# ---- limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", FIVE)
def test_a_model_that_never_ends_is_ended_and_one_that_ends_at_once_is_not(attention: str) -> None:
    sources = sentences(10)
    endless, terse = build(attention, eos_bias=-1e4), build(attention, eos_bias=1e4)
    for source, output in zip(sources, batched(endless, sources, 10)):
        assert len(output.tokens) - 1 == int(LIMITS.max_len_a * len(source) + LIMITS.max_len_b)
        assert output.delays[-1] == len(source)  # it kept reading before it was cut
        assert streamed(endless, source) == output
    options = LIMITS._replace(min_len=2)
    for source, output in zip(sources, batched(terse, sources, 10, options)):
        assert len(output.tokens) == 3
        assert streamed(terse, source, options) == output


def test_unknown_words_can_be_made_unlikely() -> None:
    model, sources = build("milk", eos_bias=-5.0), sentences(20)
    with torch.no_grad():
        model.decoder.output.bias[UNK] += 4.0
    assert any(UNK in output.tokens for output in batched(model, sources, 20))
    options = LIMITS._replace(unk_penalty=1e4)
    assert not any(UNK in output.tokens for output in batched(model, sources, 20, options))


@pytest.mark.slow
def test_a_thousand_tokens_beside_one() -> None:
    torch.manual_seed(5)
    model = build("milk", eos_bias=-3.0)
    draw = random.Random(0)
    sources = [[draw.randrange(4, 4 + WORDS) for _ in range(1000)] + [EOS], [EOS], [5, EOS]]
    options = DecodingOptions(max_len_a=0.1, max_len_b=2)
    outputs = batched(model, sources, 3, options)
    assert [streamed(model, source, options) for source in sources] == outputs
    assert len(outputs[0].tokens) > 90 and outputs[0].delays[-1] > 100


# ---- misuse ------------------------------------------------------------------------------------------------------


def test_a_model_in_training_is_refused() -> None:
    model = build("milk", dropout=0.5).train()
    for use in (lambda: translate(model, collate([[5, EOS]]), LIMITS), lambda: StreamingSession(model)):
        with pytest.raises(ValueError, match=r"model\.eval\(\)"):
            use()


def test_a_session_is_for_one_sentence() -> None:
    session = StreamingSession(build("milk"), LIMITS)
    session.push(EOS)
    assert session.done
    with pytest.raises(ValueError, match="begin a new session"):
        session.push(5)


def test_a_bidirectional_encoder_cannot_stream() -> None:
    with pytest.raises(ValueError, match="bidirectional"):
        StreamingSession(build("soft", encoder_bidirectional=True))


def test_a_session_keeps_no_graph() -> None:
    session = StreamingSession(build("milk"), LIMITS)
    target: Any = session.decoding.target
    assert target.s.h.grad_fn is None
    session.push(5)
    assert target.s.h.grad_fn is None and target.memory.h.grad_fn is None


# ---- fairseq's interface ------------------------------------------------------------------------------------------


def generate(
    model: MilkRNMT, sources: Sequence[List[int]], options: DecodingOptions = LIMITS, **changes: Any
) -> List[Dict[str, Any]]:
    generator = SimultaneousGenerator(model.decoder.dictionary, options, **changes)
    sample = {"net_input": {"src_tokens": collate(sources)}}
    return [nbest[0] for nbest in generator.generate([model], sample)]


def test_scores_are_log_probabilities(model: MilkRNMT) -> None:
    source = sentences(5, seed=6)[2]
    (hypo,) = generate(model, [source], DecodingOptions(max_len_a=0.0, max_len_b=5))
    prev = torch.tensor([[EOS, *hypo["tokens"].tolist()[:-1]]])
    with torch.no_grad():
        lprobs = model(torch.tensor([source]), None, prev)[0].log_softmax(-1)
    want = lprobs[0].gather(1, hypo["tokens"].unsqueeze(1)).squeeze(1)
    # the length limit moves the schedule of its EOS
    torch.testing.assert_close(hypo["positional_scores"][:5], want[:5], atol=1e-5, rtol=1e-4)
    assert float(hypo["score"]) == pytest.approx(float(hypo["positional_scores"].mean()), abs=1e-6)
    assert hypo["steps"] == " ".join(map(str, hypo["delays"])) and len(hypo["delays"]) == len(hypo["tokens"])


@pytest.mark.parametrize("attention", STREAMING)
def test_alignments(attention: str) -> None:
    """Soft: a weight for every source token, zero if it was not read.  Hard: words only."""
    torch.manual_seed(5)
    model, sources = build(attention), [[5, 6, 7, 8, EOS], [9, EOS], [EOS]]
    soft, hard = generate(model, sources, alignment="soft"), generate(model, sources, alignment="hard")
    for source, one, other in zip(sources, soft, hard):
        assert len(one["alignment"]) == len(one["tokens"])
        for row, delay, weights in zip(one["alignment"], one["delays"], one["soft_attention"]):
            assert len(row) == len(source) and len(weights) == delay
            assert sum(map(float, row)) == pytest.approx(1, abs=1e-4)
            assert all(float(weight) == 0 for weight in row[delay:])
        words = len(source) - 1
        assert [i for _, i in other["alignment"]] == (list(range(len(other["tokens"]) - 1)) if words else [])
        for j, i in other["alignment"]:
            weights = other["soft_attention"][i][:words]
            assert weights[j] == max(weights)


def beam_search(model: MilkRNMT, sources: Sequence[List[int]], kind: Any, **changes: Any) -> List[Dict[str, Any]]:
    generator = kind([model], model.decoder.dictionary, **{"max_len_a": 1.5, "max_len_b": 2, **changes})
    tokens = collate(sources)
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}}
    return [nbest[0] for nbest in generator.generate([model], sample)]


def test_greedy_soft_attention_is_fairseqs_beam_of_one() -> None:
    torch.manual_seed(5)
    model, sources = build("soft"), sentences(16)
    for source, ours in zip(sources, generate(model, sources)):
        (theirs,) = beam_search(model, [source], SequenceGenerator, beam_size=1)
        assert ours["tokens"].tolist() == theirs["tokens"].tolist()
        torch.testing.assert_close(ours["positional_scores"], theirs["positional_scores"], atol=1e-4, rtol=1e-4)
        full_read(theirs, torch.tensor(source), PAD)
        assert ours["delays"] == theirs["delays"] and ours["steps"] == theirs["steps"]


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_the_alignment_of_a_beam_search_knows_the_padding(beam: int, kind: str) -> None:
    """The alignment of a sentence is the same in a batch as alone: fairseq pads the source left, the encoder right."""
    torch.manual_seed(5)
    model, sources = build("soft"), [s for s in sentences(30, seed=7) if len(s) > 1][:12]
    assert len({len(source) for source in sources}) > 4, "most sentences are padded"
    # A limit that does not depend on the source: fairseq takes the length of the longest one in the batch.
    options: Dict[str, Any] = dict(beam_size=beam, print_alignment=kind, max_len_a=0, max_len_b=12)
    aligned = 0
    for source, hypo in zip(sources, beam_search(model, sources, AlignedBeamSearch, **options)):
        (alone,) = beam_search(model, [source], AlignedBeamSearch, **options)
        assert hypo["tokens"].tolist() == alone["tokens"].tolist()
        assert len(hypo["alignment"]) == len(alone["alignment"])
        aligned += len(hypo["alignment"])
        if kind == "hard":
            assert hypo["alignment"] == alone["alignment"]
        else:
            for row, other in zip(hypo["alignment"], alone["alignment"]):
                assert len(row) == len(source)
                assert list(map(float, row)) == pytest.approx(list(map(float, other)), abs=2e-6)
    assert aligned > len(sources), "some hypotheses have several aligned words"


def test_full_read_shows_the_attention_of_the_sentence_alone() -> None:
    torch.manual_seed(5)
    model, sources = build("soft"), [[5, 6, 7, 8, EOS], [9, EOS]]
    for source, hypo in zip(sources, beam_search(model, sources, SequenceGenerator, beam_size=2)):
        full_read(hypo, collate(sources)[sources.index(source)], PAD)
        assert [len(row) for row in hypo["soft_attention"]] == hypo["delays"]
        assert [sum(row) for row in hypo["soft_attention"]] == pytest.approx([1.0] * len(hypo["tokens"]), abs=1e-5)
