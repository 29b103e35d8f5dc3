"""The Transformer: every way to run it gives the same schedule, for every mechanism, with one or several schedules."""

from typing import Any, Dict, List, Tuple

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from torch import Tensor

from fairseq_milk.console.errors import UserError
from fairseq_milk.functional import expected_delays
from fairseq_milk.generation import DecodingOptions, StreamingSession, translate
from fairseq_milk.models.milk_transformer import MilkTransformer
from tests.support import tiny_models as tiny
from tests.support.tiny_models import Kind

PAD, EOS = Dictionary().pad(), Dictionary().eos()
LIMITS = DecodingOptions(max_len_a=1.0, max_len_b=5)
SOURCES = [[*pair.source, EOS] for pair in tiny.pairs(11, longest=8, seed=5)] + [[EOS]]


kinds = pytest.mark.parametrize("kind", tiny.TRANSFORMERS, ids=str)
Written = List[Tuple[List[int], List[int]]]  # tokens and delays of each sentence


def decoder_of(kind: Kind) -> MilkTransformer:
    """A model in float64, so that rounding does not decide between two tokens."""
    model: MilkTransformer = kind.build(energy_bias=4.0 if kind.schedules > 1 else 0.0).double().eval()
    for attention in model.decoder.attentions:
        if attention.learned and attention.decides:
            torch.nn.init.ones_(attention.head.g)
    return model


def rows(sentences: List[List[int]]) -> Tensor:
    tokens: Tensor = collate_tokens([torch.tensor(s) for s in sentences], PAD)
    return tokens


def batched(model: MilkTransformer, size: int, options: DecodingOptions = LIMITS) -> Written:
    parts = [SOURCES[at : at + size] for at in range(0, len(SOURCES), size)]
    return [(h.tokens, h.delays) for part in parts for h in translate(model, rows(part), options)]


def streamed(model: MilkTransformer, options: DecodingOptions = LIMITS) -> Written:
    result: Written = []
    for source in SOURCES:
        session = StreamingSession(model, options)
        written = [step for token in source for step in session.push(token)]
        result.append(([step.token for step in written], [step.delay for step in written]))
    return result


def various(written: Written) -> bool:
    """Whether the delays vary, so that a test cannot pass by accident."""
    early = sum(delay < len(source) for source, (_, delays) in zip(SOURCES, written) for delay in delays)
    return 0 < early < sum(len(delays) for _, delays in written)


@kinds
def test_batches_and_streams_write_the_same_at_the_same_time(kind: Kind) -> None:
    model = decoder_of(kind)
    alone = batched(model, 1)
    assert batched(model, 7) == alone and batched(model, 64) == alone
    assert streamed(model) == alone
    assert kind.attention == "soft" or various(alone)


@pytest.mark.parametrize(
    "options",
    [
        LIMITS._replace(min_wait=4),
        LIMITS._replace(max_writes=2),
        LIMITS._replace(early_eos=False),
        LIMITS._replace(min_wait=2, max_writes=1, early_eos=False, min_len=3),
    ],
    ids=["min_wait", "max_writes", "late_eos", "all"],
)
@pytest.mark.parametrize("kind", [Kind("milk", heads=2), Kind("mocha", heads=2, schedules=2), Kind("waitk", heads=2)])
def test_batches_and_streams_agree_with_knobs(kind: Kind, options: DecodingOptions) -> None:
    model = decoder_of(kind)
    alone = batched(model, 1, options)
    assert batched(model, 7, options) == alone and streamed(model, options) == alone
    for source, (_, delays) in zip(SOURCES, alone):
        assert delays[0] >= min(options.min_wait, len(source))


@kinds
@torch.no_grad()
def test_teacher_forcing_is_the_system_that_is_decoded(kind: Kind) -> None:
    """Hard mode over what the system has written: its delays, and its tokens are the most probable ones."""
    model = decoder_of(kind)
    # without the limit on the length, which the schedule knows nothing of
    written = [(tokens[:6], delays[:6]) for tokens, delays in batched(model, 7)]
    previous = rows([[EOS, *tokens[:-1]] for tokens, _ in written])
    logits, extra = model(rows(SOURCES), None, previous, hard=True)
    delays = tiny.delays(extra["alpha"])
    assert torch.equal(delays, expected_delays(extra["alphas"]).amax(1).long()), "the last head decides"
    logits[:, :, PAD] = -torch.inf
    logits[:, 0, EOS] = -torch.inf
    for b, (tokens, waited) in enumerate(written):
        assert delays[b, : len(tokens)].tolist() == waited
        assert logits[b, : len(tokens)].argmax(-1).tolist() == tokens


@kinds
@torch.no_grad()
def test_what_has_not_been_read_changes_nothing(kind: Kind) -> None:
    model = decoder_of(kind)
    source, target = torch.randint(4, 16, (8, 9)), torch.randint(4, 16, (8, 6))
    logits, extra = model(source, None, target, hard=True)
    delays = tiny.delays(extra["alpha"])
    for cut in range(1, 9):
        other = torch.cat((source[:, :cut], torch.randint(4, 16, (8, 9 - cut))), dim=1)
        after, extra = model(other, None, target, hard=True)
        before = delays <= cut
        torch.testing.assert_close(after[before], logits[before], rtol=0, atol=1e-10)
        assert torch.equal(tiny.delays(extra["alpha"])[before], delays[before])


@torch.no_grad()
def test_the_encoder_steps_to_the_same_states_and_encodes_no_token_twice() -> None:
    encoder = tiny.transformer().double().eval().encoder
    tokens = torch.randint(4, 16, (3, 7))
    want, states = encoder(tokens).h, None
    for j in range(7):
        h, states = encoder.step(tokens[:, j], states)
        torch.testing.assert_close(h, want[:, j])
        assert [tuple(x.shape) for layer in states for x in layer] == [(3, 2, j + 1, 4)] * 4


@torch.no_grad()
def test_padding_on_either_side_changes_nothing() -> None:
    model = tiny.transformer().double().eval()
    pairs = tiny.pairs(6, longest=7)
    left, right = (tiny.batch(pairs, left_pad_source=side)["net_input"] for side in (True, False))
    logits = model(**right, hard=False)[0]
    torch.testing.assert_close(model(**left, hard=False)[0], logits)
    for b, pair in enumerate(pairs):
        alone = model(**tiny.batch([pair])["net_input"], hard=False)[0][0]
        torch.testing.assert_close(alone, logits[b, : len(pair.target) + 1])


@kinds
def test_every_parameter_learns(kind: Kind) -> None:
    model = kind.build(noise=1.0).train()
    tiny.criterion(latency_weight=0.2)(model, tiny.batch(tiny.pairs(6)))[0].backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all() and p.grad.norm() > 1e-8, name


@pytest.mark.parametrize("head_latency", ["weighted", "maximum"])
@pytest.mark.parametrize("kind", [k for k in tiny.TRANSFORMERS if k.attention in tiny.LEARNED])
def test_the_latency_alone_moves_every_head(kind: Kind, head_latency: str) -> None:
    model = kind.build().train()
    criterion = tiny.criterion(latency_weight=1.0, head_latency=head_latency)
    extra = model(**(sample := tiny.batch(tiny.pairs(6)))["net_input"], features_only=True)[1]
    criterion._latency(extra, sample["target"])[1].backward()
    for attention in model.decoder.attentions:
        if attention.decides:
            grad = attention.head.r.grad
            assert grad.isfinite().all() and (grad != 0).all()
            # the published average is also lowered by delaying a head that is more than a token ahead of it
            assert grad.sum() < 0 if head_latency == "weighted" else (grad < 0).all(), "stopping earlier is cheaper"


def test_the_variance_is_that_of_the_heads() -> None:
    model = Kind("milk", heads=2, schedules=2).build().double().train()
    sample = tiny.batch(tiny.pairs(5))
    plain, weighed = (tiny.criterion(head_variance_weight=weight) for weight in (0.0, 0.5))
    g = expected_delays(model(**sample["net_input"], features_only=True)[1]["alphas"])  # (B, S, I)
    lengths = sample["target"].ne(PAD).sum(1).tolist()
    want = 0.0
    for delays, n in zip(g.transpose(1, 2).tolist(), lengths):
        for heads in delays[:n]:
            mean = sum(heads) / len(heads)
            want += sum((x - mean) ** 2 for x in heads) / len(heads) / n
    assert g.size(1) == 4 and want > 0
    difference = weighed(model, sample)[0] - plain(model, sample)[0]
    assert float(difference.detach()) == pytest.approx(0.5 * want)


@torch.no_grad()
def test_fairseqs_search_asks_for_the_same_scores() -> None:
    model = tiny.transformer(attention="soft").double().eval()
    net_input = tiny.batch(tiny.pairs(4))["net_input"]
    encoded = model.encoder(net_input["src_tokens"])
    want = model.decoder(net_input["prev_output_tokens"], encoded)[0]
    state: Dict[str, Any] = {}
    order = torch.tensor([2, 0, 3, 1])
    for i in range(want.size(1)):
        tokens = net_input["prev_output_tokens"][:, : i + 1]
        torch.testing.assert_close(model.decoder(tokens, encoded, state)[0][:, 0], want[:, i])
        model.decoder.reorder_incremental_state(state, order)
        encoded, want = model.encoder.reorder_encoder_out(encoded, order), want[order]
        net_input["prev_output_tokens"] = net_input["prev_output_tokens"][order]
    with pytest.raises(UserError, match="reads the whole source first"):
        tiny.transformer().eval().decoder(tokens, encoded, {})


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("attention_heads", 3, "--embed-dim must be a multiple of --attention-heads, which is 3"),
        ("schedule_heads", 4, "--schedule-heads must be 1 or --attention-heads, which is 2"),
        ("schedule_layer", 3, "--schedule-layer must be a layer of the decoder, 1 to 2"),
        ("schedule_layer", 0, "--schedule-layer must be a layer of the decoder, 1 to 2"),
        ("ffn_dim", 0, "--ffn-dim must be at least 1"),
    ],
)
def test_what_cannot_work_is_refused(option: str, value: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        tiny.transformer(**{option: value})
