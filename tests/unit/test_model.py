"""The model: teacher forcing against the incremental half, padding, causality, sizes, dropout, sharing, gradients."""

from typing import Any, Dict, List, Set, Tuple

import pytest
import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_milk.console.errors import UserError
from fairseq_milk.models.config import MilkRNMTConfig
from fairseq_milk.models.decoder import RNMTDecoder
from fairseq_milk.models.encoder import right_padded
from fairseq_milk.models.milk_rnmt import MilkRNMT
from tests.support import tiny_models as tiny

PAIRS = tiny.pairs(6, longest=7)
DEPTHS = [(1, 1), (3, 3), (4, 5)]


def read_and_write(model: MilkRNMT, source: Tensor, previous: Tensor) -> Tuple[Tensor, List[int], List[Tensor]]:
    """One sentence through the incremental half, token by token: logits (I, V), delays, attention.

    source: (J,), previous: (I,), y_{i-1} for i = 1 .. I.
    """
    encoder, decoder, attention = model.encoder, model.decoder, model.decoder.attention
    state, source_states = decoder.begin(1), None
    memory = attention.nothing_read(1, state.c, room=1)
    heads = attention.begin_heads(memory)
    logits, delays, looks = [], [], []
    for i, y in enumerate(previous, start=1):
        s = decoder.query(y.view(1), state)
        queries = attention.queries(s.h)
        while int(memory.lengths) < len(source):
            heads = attention.seek(queries, memory, heads, i)
            if bool(heads.ready):
                break
            h, source_states = encoder.step(source[int(memory.lengths)].view(1), source_states)
            memory = attention.read(memory, h, torch.tensor([0]))
        out = attention.attend(queries, memory)
        heads = heads.after_write(memory.lengths)
        features, state = decoder.write(s, out.c, state)
        logits.append(decoder.output(features)[0])
        delays.append(int(memory.lengths))
        looks.append(out.beta[0, : delays[-1]])
    return torch.stack(logits), delays, looks


def forward(model: MilkRNMT, sample: Dict[str, Any], **kwargs: Any) -> Tuple[Tensor, Dict[str, Tensor]]:
    return model(**sample["net_input"], **kwargs)


def logits_of_each(model: MilkRNMT, pairs: List[tiny.Pair], **kwargs: Any) -> List[Tensor]:
    """Logits (|y|, V) of each sentence, padding cut off."""
    logits, _ = forward(model, tiny.batch(pairs, **kwargs))
    return [row[: len(pair.target) + 1] for row, pair in zip(logits, pairs)]


# ---- a model of one mechanism as the start of another ----------------------------------------------------------


@pytest.mark.parametrize("after", tiny.FIVE)
@pytest.mark.parametrize("before", tiny.FIVE)
@pytest.mark.parametrize("build", [tiny.model, tiny.transformer])
def test_a_model_starts_from_that_of_another_mechanism(build: Any, before: str, after: str) -> None:
    """Parameters that both models have are copied, the projections of a new head are those of the soft energy.

    All others that only the new model has keep their initial values.
    """
    trained, model = build(attention=before).state_dict(), build(attention=after, projection_pace=2.0)
    started = {name: value.clone() for name, value in model.state_dict().items()}
    for name in started:
        part, _, key = name.rpartition(".")
        learned = trained.get(f"{part.replace('.head', '.soft_energy')}.{key}")
        if part.endswith(".head") and name not in trained and learned is not None:
            assert key in ("w_s", "w_q", "v")
            started[name] = learned / 2
    model.load_state_dict(dict(trained))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, trained.get(name, started[name]))


@pytest.mark.parametrize("build", [tiny.model, tiny.transformer])
@torch.no_grad()
def test_milk_starts_where_soft_attention_ends(build: Any) -> None:
    """MILk with a head that never stops early equals soft attention."""
    soft = build(attention="soft").eval()
    milk = build(attention="milk", spread=0, energy_bias=-60.0).eval()
    milk.load_state_dict(soft.state_dict())
    sample = tiny.batch(PAIRS)
    torch.testing.assert_close(forward(milk, sample)[0], forward(soft, sample)[0])


def test_an_incomplete_energy_is_refused_as_a_start() -> None:
    state = tiny.model(attention="milk").state_dict()
    del state["decoder.attention.head.v"]
    with pytest.raises(UserError, match="does not fit"):
        tiny.model(attention="milk").load_state_dict(state)


# ---- one schedule, two ways to run it ---------------------------------------------------------------------------


@pytest.mark.parametrize("encoder_layers, decoder_layers", DEPTHS)
@pytest.mark.parametrize("attention", tiny.FIVE)
@torch.no_grad()
def test_teacher_forcing_is_the_incremental_half(attention: str, encoder_layers: int, decoder_layers: int) -> None:
    model = tiny.model(attention=attention, encoder_layers=encoder_layers, decoder_layers=decoder_layers).eval()
    sample = tiny.batch(PAIRS)
    logits, extra = forward(model, sample)
    g = tiny.delays(extra["alpha"])
    all_delays: Set[int] = set()
    for b, pair in enumerate(PAIRS):
        n = len(pair.target) + 1
        source, previous = (sample["net_input"][name][b] for name in ("src_tokens", "prev_output_tokens"))
        stepwise, delays, looks = read_and_write(model, source[: len(pair.source) + 1], previous[:n])
        torch.testing.assert_close(stepwise, logits[b, :n], rtol=1e-4, atol=1e-5)
        assert delays == g[b, :n].tolist()
        for i, look in enumerate(looks):
            torch.testing.assert_close(look, extra["attn"][b, i, : len(look)], rtol=1e-4, atol=1e-5)
            assert float(extra["attn"][b, i, len(look) :].abs().sum()) == 0
        all_delays.update(len(pair.source) + 1 - d for d in delays)
    assert attention == "soft" or len(all_delays) > 2, "the schedule of this test is trivial"


@pytest.mark.parametrize("attention", tiny.FIVE)
@torch.no_grad()
def test_neither_the_side_nor_the_amount_of_padding_matters(attention: str) -> None:
    model = tiny.model(attention=attention, encoder_layers=3, decoder_layers=3).eval()
    alone = [logits_of_each(model, [pair])[0] for pair in PAIRS]
    for padding in ({"left_pad_source": False}, {"left_pad_source": True}, {"left_pad_source": True, "pad_to": 20}):
        for one, among_others in zip(alone, logits_of_each(model, PAIRS, **padding)):
            torch.testing.assert_close(one, among_others, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_padding_does_not_change_the_bidirectional_encoder() -> None:
    model = tiny.model(attention="soft", encoder_bidirectional=True, encoder_layers=3).eval()
    alone = [logits_of_each(model, [pair])[0] for pair in PAIRS]
    for left_pad_source in (False, True):
        for one, among_others in zip(alone, logits_of_each(model, PAIRS, left_pad_source=left_pad_source)):
            torch.testing.assert_close(one, among_others, rtol=1e-4, atol=1e-5)
    backwards = [tiny.Pair(pair.source[:-1] + [4 + pair.source[-1] % 3], pair.target) for pair in PAIRS]
    first, changed = model.encoder(tiny.batch(PAIRS)["net_input"]["src_tokens"]), tiny.batch(backwards)["net_input"]
    assert (model.encoder(changed["src_tokens"]).h[:, 0] != first.h[:, 0]).any(), "it does not look ahead"


def test_right_padded_moves_rows_and_keeps_them_whole() -> None:
    tokens = torch.tensor([[1, 1, 5, 2], [5, 6, 2, 1], [5, 6, 7, 2], [1, 1, 1, 2]])
    moved, lengths = right_padded(tokens, 1)
    assert moved.tolist() == [[5, 2, 1, 1], [5, 6, 2, 1], [5, 6, 7, 2], [2, 1, 1, 1]]
    assert lengths.tolist() == [2, 3, 4, 1]


# ---- nothing is seen before it is read --------------------------------------------------------------------------


@pytest.mark.parametrize("attention", tiny.STREAMING)
@torch.no_grad()
def test_what_has_not_been_read_changes_nothing(attention: str) -> None:
    """Changing, adding or removing source tokens after position g_i does not change y_1 .. y_i."""
    model = tiny.model(attention=attention, encoder_layers=3, decoder_layers=3).eval()
    logits, extra = forward(model, tiny.batch(PAIRS))
    changed, steps = [], []
    for b, (pair, delays) in enumerate(zip(PAIRS, tiny.delays(extra["alpha"]).tolist())):
        for i, g in enumerate(delays[: len(pair.target) + 1]):
            for rest in ([], [4], [15, 14, 13, 12, 11, 10, 9, 8]):
                if g <= len(pair.source):  # EOS has not been read
                    changed.append(tiny.Pair(pair.source[:g] + rest, pair.target))
                    steps.append((b, i, g))
    assert len(steps) > 10
    again, extra_again = forward(model, tiny.batch(changed))
    for row, (b, i, g) in enumerate(steps):
        torch.testing.assert_close(again[row, : i + 1], logits[b, : i + 1], rtol=1e-4, atol=1e-5)
        assert tiny.delays(extra_again["alpha"])[row, i] == g


def test_the_decoder_starts_from_zeros() -> None:
    state = tiny.model(decoder_layers=3).decoder.begin(2)
    assert len(state.layers) == 3
    for tensor in [state.c, *(x for layer in state.layers for x in layer)]:
        assert tensor.shape == (2, 8) and not tensor.any()


@pytest.mark.parametrize("attention", tiny.STREAMING)
def test_a_bidirectional_encoder_is_refused_for_streaming(attention: str) -> None:
    with pytest.raises(UserError, match=f"--encoder-bidirectional .* not with --attention {attention}"):
        tiny.model(attention=attention, encoder_bidirectional=True)


def test_a_bidirectional_encoder_cannot_be_stepped() -> None:
    with pytest.raises(NotImplementedError):
        tiny.model(attention="soft", encoder_bidirectional=True).encoder.step(torch.tensor([4]), None)


# ---- sizes ------------------------------------------------------------------------------------------------------


def configured(*arguments: str) -> MilkRNMTConfig:
    """The options that `fairseq-train` gives the model."""
    parser = fairseq_options.get_training_parser()
    args = fairseq_options.parse_args_and_arch(parser, ["data", *arguments])
    return MilkRNMTConfig.read(convert_namespace_to_omegaconf(args).model)


@pytest.mark.parametrize("build", [tiny.model, tiny.transformer])
def test_an_inactive_head_gives_soft_attention(build: Any) -> None:
    sample = tiny.batch(tiny.pairs(5))
    torch.manual_seed(0)
    milk = build(attention="milk", noise=4.0, head_after=2, energy_bias=3.0).train()
    soft = build(attention="soft").train()
    soft.load_state_dict({name: milk.state_dict()[name] for name in soft.state_dict()})
    milk.set_num_updates(1)
    ours, theirs = (model(**sample["net_input"]) for model in (milk, soft))
    torch.testing.assert_close(ours[0], theirs[0])
    ours[0].sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in milk.decoder.attention.head.parameters())
    milk.set_num_updates(2)
    assert not torch.allclose(milk(**sample["net_input"])[0], theirs[0]), "now it decides"


def test_the_defaults_are_the_paper_s() -> None:
    cfg = configured("--arch", "milk_rnmt")
    assert (cfg.encoder_layers, cfg.decoder_layers) == (6, 8)
    assert (cfg.embed_dim, cfg.hidden_size, cfg.energy_dim) == (512, 512, 512)
    assert (cfg.dropout, cfg.attention, cfg.noise, cfg.encoder_bidirectional) == (0.2, "milk", 4.0, False)
    assert (cfg.cell_clip, cfg.output_nonlinearity) == (10.0, False)
    assert (cfg.initial_bias, cfg.head_after, cfg.noise_ramp, cfg.head_pace) == (-8.0, 0.3, 0.0, 1.0), "not the paper's"
    assert [configured("--arch", "milk_rnmt", "--attention", a).initial_bias for a in ("mocha", "monotonic")] == [
        -1,
        -1,
    ]
    assert configured("--arch", "milk_rnmt_small").head_pace == configured("--arch", "milk_rnmt_tiny").head_pace == 20
    assert not (cfg.unpreserved_mass or cfg.published_alignment)
    assert not (cfg.share_all_embeddings or cfg.share_decoder_input_output_embed)
    model = MilkRNMT.build_model(tiny.options(encoder_layers=6, decoder_layers=8), tiny.task())
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (6, 8)


def test_the_named_architectures() -> None:
    small = configured("--arch", "milk_rnmt_small")
    assert (small.encoder_layers, small.decoder_layers) == (2, 2)
    assert (small.embed_dim, small.hidden_size, small.energy_dim, small.dropout) == (256, 256, 256, 0.2)
    offline = configured("--arch", "rnmt_offline")
    assert offline.encoder_bidirectional and offline.attention == "soft"
    assert (offline.encoder_layers, offline.decoder_layers, offline.hidden_size) == (6, 8, 512)
    changed = configured("--arch", "milk_rnmt_tiny", "--decoder-layers", "3", "--dropout", "0.3")
    assert (changed.encoder_layers, changed.decoder_layers, changed.hidden_size, changed.dropout) == (1, 3, 128, 0.3)


def test_rnmt_offline_refuses_a_streaming_attention() -> None:
    with pytest.raises(UserError, match="--attention milk"):
        configured("--arch", "rnmt_offline", "--attention", "milk")


@pytest.mark.parametrize(
    "name, value",
    [
        ("encoder_layers", 0),
        ("hidden_size", 0),
        ("dropout", 1.5),
        ("dropout", -0.1),
        ("dropout", float("nan")),
        ("noise", -1.0),
        ("noise_ramp", -1),
        ("noise_ramp", 1.5),
        ("head_pace", 0.0),
        ("projection_pace", 0.0),
        ("embed_pace", 0.0),
        ("cell_clip", -1.0),
        ("energy_bias", float("inf")),
        ("chunk_size", 0),
        ("wait_k", 0),
        ("emission_rate", 0.0),
    ],
)
def test_options_out_of_range_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(UserError, match=f"^--{name.replace('_', '-')} must be .* got "):
        MilkRNMTConfig.read(tiny.options(**{name: value}))


def test_the_pace_of_the_embeddings_is_theirs_alone() -> None:
    """The function is the same; embeddings are stored divided by the pace and learn that much faster."""
    slow, fast = tiny.model(), tiny.model(embed_pace=16.0)
    state = slow.state_dict()
    fast.load_state_dict({name: x / 16 if "embedding" in name else x for name, x in state.items()})
    outputs = [forward(model.train(), tiny.batch(PAIRS))[0] for model in (slow, fast)]
    torch.testing.assert_close(*outputs)
    for output in outputs:
        output.square().sum().backward()
    for (name, one), other in zip(slow.named_parameters(), fast.parameters()):
        assert one.grad is not None and other.grad is not None
        torch.testing.assert_close(other.grad, (16 if "embedding" in name else 1) * one.grad, msg=name)
    drawn = tiny.model(spread=0, embed_pace=16.0).encoder.embedding.weight
    assert 0.03 < float(drawn.abs().max()) <= 1 / 16


def test_embeddings_can_be_shared() -> None:
    shared = tiny.model(share_all_embeddings=True)
    assert shared.encoder.embedding.weight is shared.decoder.embedding.weight is shared.decoder.output.weight
    tied = tiny.model(share_decoder_input_output_embed=True)
    assert tied.decoder.embedding.weight is tied.decoder.output.weight
    assert tied.encoder.embedding.weight is not tied.decoder.embedding.weight
    for model in (shared, tied):
        assert forward(model, tiny.batch(PAIRS))[0].shape[-1] == len(model.decoder.dictionary)
    two_languages = tiny.task()
    two_languages.target_dictionary = tiny.dictionary(9)
    with pytest.raises(UserError, match="--share-all-embeddings .* --joined-dictionary"):
        MilkRNMT.build_model(tiny.options(share_all_embeddings=True), two_languages)


# ---- training ---------------------------------------------------------------------------------------------------


def test_dropout_is_where_rnmt_plus_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout is on embeddings, encoder layers and upper decoder layers, and on nothing else."""
    dropped: List[Tuple[Tuple[int, ...], float, bool]] = []

    def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        dropped.append((tuple(x.shape), p, training))
        return x

    monkeypatch.setattr(torch.nn.functional, "dropout", dropout)
    model = tiny.model(encoder_layers=3, decoder_layers=4, dropout=0.3).train()
    sample = tiny.batch(PAIRS)
    forward(model, sample)
    (b, j), i = sample["net_input"]["src_tokens"].shape, sample["target"].size(1)
    source, target = [(b, j, 6)] + [(b, j, 8)] * 3, [(b, i, 6)] + [(b, i, 8)] * 3
    assert dropped == [(shape, 0.3, True) for shape in source + target]


@torch.no_grad()
def test_residuals_start_at_the_third_layer() -> None:
    """A layer that is switched off (scale and bias 0) is bypassed by its residual; the second layer has none."""
    tokens = tiny.batch(PAIRS)["net_input"]

    def outputs(silent: int) -> Tuple[Tensor, Tensor]:
        """h of the encoder and x of the decoder, `silent` and the layers above it switched off."""
        torch.manual_seed(0)
        model = tiny.model(attention="soft", encoder_layers=4, decoder_layers=4).eval()
        h = model.encoder(tokens["src_tokens"])
        for stack in (model.encoder.layers, model.decoder.layers):
            for layer in list(stack)[silent:]:
                torch.nn.init.zeros_(layer.scale)
        x = model.decoder(tokens["prev_output_tokens"], encoder_out=h, features_only=True)[0][..., :8]
        return model.encoder(tokens["src_tokens"]).h, x

    for second, third in zip(outputs(1), outputs(2)):
        assert not second.any() and third.any()
    for third, fourth in zip(outputs(2), outputs(3)):
        assert not torch.equal(third, fourth)


@pytest.mark.parametrize("attention", tiny.FIVE)
def test_every_parameter_learns_from_the_likelihood(attention: str) -> None:
    model = tiny.model(attention=attention, encoder_layers=3, decoder_layers=3, noise=1.0, dropout=0.1).train()
    loss, _, _ = tiny.criterion()(model, tiny.batch(tiny.pairs(8, shortest=3, longest=6)))
    loss.backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and torch.isfinite(p.grad).all() and p.grad.abs().sum() > 0, name


def test_every_parameter_of_the_offline_model_learns() -> None:
    model = tiny.model(attention="soft", encoder_bidirectional=True, encoder_layers=3, share_all_embeddings=True)
    tiny.criterion()(model.train(), tiny.batch(PAIRS))[0].backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.abs().sum() > 0, name


def test_noise_and_expectation_in_training_only() -> None:
    model, sample = tiny.model(noise=4.0), tiny.batch(PAIRS)
    alphas = [forward(model.train(), sample)[1]["alpha"] for _ in range(2)]
    assert not torch.equal(*alphas)
    hard = forward(model.eval(), sample)[1]["alpha"]
    tiny.delays(hard)  # refuses an expected schedule
    expected = [forward(model, sample, hard=False)[1]["alpha"] for _ in range(2)]
    assert torch.equal(*expected) and not torch.equal(expected[0], hard)


def test_the_noise_grows_with_the_updates() -> None:
    model = tiny.model(noise=4.0, noise_ramp=3)
    noise = []
    for update in (0, 1, 3, 100):
        model.set_num_updates(update)
        noise.append(getattr(model.decoder.attention.stop, "noise"))  # noqa: B009
    assert noise == [1.0, 2.0, 4.0, 4.0]


# ---- fairseq's own beam search, for the offline model -----------------------------------------------------------


@torch.no_grad()
def test_soft_attention_one_token_at_a_time_is_the_full_forward() -> None:
    model = tiny.model(attention="soft", encoder_layers=3, decoder_layers=3).eval()
    sample = tiny.batch(PAIRS)
    logits, extra = forward(model, sample)
    encoder_out = model.encoder(sample["net_input"]["src_tokens"])
    state: Dict[str, Any] = {}
    previous = sample["net_input"]["prev_output_tokens"]
    for i in range(previous.size(1)):
        step, extra_step = model.decoder(previous[:, : i + 1], encoder_out=encoder_out, incremental_state=state)
        torch.testing.assert_close(step[:, 0], logits[:, i], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(extra_step["attn"][:, 0], extra["attn"][:, i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@torch.no_grad()
def test_beam_search_scores_are_those_of_the_full_forward(bidirectional: bool) -> None:
    """The scores stay right when beams are reordered and finished sentences leave the batch."""
    model = tiny.model(attention="soft", encoder_bidirectional=bidirectional, encoder_layers=3, decoder_layers=3)
    sample = tiny.batch(PAIRS, left_pad_source=True)
    search = SequenceGenerator([model.eval()], model.decoder.dictionary, beam_size=3, max_len_b=6)
    for pair, nbest in zip(PAIRS, search.generate([model], sample)):
        assert len(nbest) == 3
        for hypothesis in nbest:
            tokens = hypothesis["tokens"].tolist()
            logits, _ = forward(model, tiny.batch([tiny.Pair(pair.source, tokens[:-1])]))
            scores = logits[0].log_softmax(-1).gather(1, hypothesis["tokens"].unsqueeze(1)).squeeze(1)
            torch.testing.assert_close(hypothesis["positional_scores"], scores, rtol=1e-3, atol=1e-4)


def test_the_decoder_selects_states_by_row() -> None:
    state = tiny.model(decoder_layers=2).decoder.begin(3)
    state = type(state)([type(s)(s.h + torch.arange(3).view(3, 1), s.c) for s in state.layers], state.c)
    chosen = state.select(torch.tensor([2, 0]))
    assert [s.h[:, 0].tolist() for s in chosen.layers] == [[2.0, 0.0]] * 2 and chosen.c.shape == (2, 8)


def test_the_model_does_not_limit_lengths() -> None:
    model = tiny.model()
    assert min(model.encoder.max_positions(), RNMTDecoder.max_positions(model.decoder)) >= 10000
