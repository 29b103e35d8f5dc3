"""What every mechanism promises, tested on every stop with every lookback, whether the pair has a name or not.

No test here knows a mechanism by name.  What they ask of it is what it declares: whether it streams, and whether it
learns when to stop.  The two halves of the interface are each other's oracle: a schedule is a walk of the
incremental half, and the expected half has to be the average of those walks.
"""

from dataclasses import replace
from itertools import product
from typing import Callable, Dict, Iterable, List, Tuple

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from fairseq_milk.attention import (
    AttentionOptions,
    AttentionState,
    Heads,
    Memory,
    SimultaneousAttention,
    build_pair,
)
from fairseq_milk.functional import differentiable_average_lagging
from tests.support import oracles
from tests.support.attention_runs import (
    OPTIONS,
    PAIRS,
    RAGGED,
    Run,
    batch,
    build,
    expected,
    fit,
    incremental,
    learned_heads,
    prefix,
    same,
    set_threshold,
    writes,
)
from tests.support.torch_features import FLOAT16, needs_equal_rows

pytestmark = pytest.mark.parametrize("name", list(PAIRS))


def various(g: Tensor) -> bool:
    """Whether the delays vary, so that a test cannot pass by accident."""
    return len(g.unique()) > 2


# --- expected = the average of the walks --------------------------------------------------------------------------


def stop_probabilities(attention: SimultaneousAttention, s: Tensor, h: Tensor) -> List[List[float]]:
    """p_ij of one sentence: the head's, or what a fixed schedule answers after j READs.  (I, D), (J, D) -> I x J."""
    p = []
    for i, s_i in enumerate(s.unsqueeze(1), start=1):
        for head in learned_heads(attention):
            keys = head.project(h).unsqueeze(0)
            e = head(keys, head.query(s_i), head.weights(keys))
            p.append(torch.sigmoid(e).squeeze(0).tolist())
        if len(p) < i:
            seen = (prefix(attention, h, j) for j in range(1, len(h) + 1))
            p.append([float(writes(attention, attention.queries(s_i), memory, i)) for memory in seen])
    return p


def average_of_walks(attention: SimultaneousAttention, s: Tensor, h: Tensor, preserve_mass: bool) -> Run:
    """E[context, attention and stop of the incremental half] over every table of decisions.  One sentence."""
    size = len(h)
    beta, alpha = torch.zeros(2, len(s), size, dtype=h.dtype)
    c = torch.zeros(len(s), h.size(1), dtype=h.dtype)
    for stops, probability in oracles.stop_distribution(stop_probabilities(attention, s, h), preserve_mass).items():
        for i, stop in enumerate(stops):
            if stop is not None:
                out = attention.attend(attention.queries(s[i : i + 1]), prefix(attention, h, stop))
                c[i] += probability * out.c[0]
                beta[i] += probability * fit(out.beta, size)[0]
                alpha[i] += probability * fit(out.alpha, size)[0]
    return Run(c.unsqueeze(0), beta.unsqueeze(0), alpha.unsqueeze(0))


@pytest.mark.parametrize("sizes", [(1, 2), (2, 3), (3, 2), (4, 3)], ids=lambda sizes: "J={} I={}".format(*sizes))
@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        OPTIONS._replace(preserve_mass=False),
        OPTIONS._replace(exact_alignment=False),
        OPTIONS._replace(exact_alignment=False, preserve_mass=False),
        OPTIONS._replace(chunk_size=3, k=1, rate=0.6),
    ],
    ids=["default", "mass lost", "published form", "published form, mass lost", "other sizes"],
)
@torch.no_grad()
def test_expected_is_the_average_over_every_table(name: str, options: AttentionOptions, sizes: Tuple[int, int]) -> None:
    attention = build(name, options, scale=2.0, bias=-0.3)
    s, h, lengths = batch(sizes[:1], sizes[1])
    # the decoder writes at the end of the source whatever a fixed schedule says; a head may be told to run off it
    preserve_mass = options.preserve_mass or not learned_heads(attention)
    same(expected(attention, s, h, lengths), average_of_walks(attention, s[0], h[0], preserve_mass))


# --- p in {0, 1}: expected = incremental --------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.9])
@torch.no_grad()
def test_hard_schedule_is_that_of_decoding(name: str, threshold: float) -> None:
    attention = build(name)
    set_threshold(attention, threshold)
    s, h, lengths = batch(RAGGED * 5, tgt_size=6)
    want = incremental(attention, s, h, lengths)
    same(expected(attention, s, h, lengths, hard=True), want)
    assert not attention.streaming or various(want.g)


@torch.no_grad()
def test_saturated_energies_give_the_schedule_of_decoding(name: str) -> None:
    attention = build(name, scale=1e7)
    s, h, lengths = batch(RAGGED * 5, tgt_size=6)
    want = incremental(attention, s, h, lengths)
    same(expected(attention, s, h, lengths), want)
    assert not attention.streaming or various(want.g)


@torch.no_grad()
def test_the_threshold_moves_the_schedule_of_a_learned_head(name: str) -> None:
    attention = build(name)
    s, h, lengths = batch(RAGGED * 5, tgt_size=6)
    delays = []
    for threshold in (0.1, 0.5, 0.9):
        set_threshold(attention, threshold)
        delays.append(float(incremental(attention, s, h, lengths).g.mean()))
    assert delays[0] < delays[1] < delays[2] if learned_heads(attention) else delays[0] == delays[1] == delays[2]


# --- all target steps at once, the whole source at once -------------------------------------------------------------


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "published form"])
def test_all_steps_at_once_are_one_after_the_other(name: str, exact: bool, hard: bool) -> None:
    attention = build(name, OPTIONS._replace(exact_alignment=exact))
    s, h, lengths = batch()
    one_by_one = expected(attention, s, h, lengths, hard)
    memory = attention.remember(h, lengths)
    first, state = attention.expected(s[:, :1], memory, attention.begin(memory), hard)
    rest, state = attention.expected(s[:, 1:], memory, state, hard)
    at_once = Run(*(torch.cat(rows, dim=1) for rows in zip(first, rest)))
    same(at_once, one_by_one)
    assert state.i == s.size(1)
    want = gradients(attention, one_by_one, lengths)
    for key, grad in gradients(attention, at_once, lengths).items():
        torch.testing.assert_close(grad, want[key], rtol=1e-7, atol=1e-9, msg=key)


@torch.no_grad()
def test_the_whole_source_at_once_has_the_stops_of_a_stream(name: str) -> None:
    """A decoder that scores all of a row at once, against one that is given token after token."""
    attention = build(name)
    s, h, lengths = batch(RAGGED * 5, tgt_size=6)
    memory = attention.remember(h, lengths)
    heads, delays = attention.begin_heads(memory), []
    for i, s_i in enumerate(s.unbind(1), start=1):
        heads = attention.seek(attention.queries(s_i), memory, heads, i)
        delays.append(memory.seen_by(heads).lengths)
        heads = heads.after_write(lengths)
    assert torch.equal(torch.stack(delays, dim=1), incremental(attention, s, h, lengths).g.long())


# --- one sentence alone: numbers instead of tensors, a cut memory instead of masks -----------------------------------


@pytest.mark.parametrize("size", [1, 2, 9])
@torch.no_grad()
def test_look_back_is_attend(name: str, size: int) -> None:
    """What a streaming session looks at from each stop in a memory that has more tokens."""
    attention = build(name, OPTIONS._replace(chunk_size=3))
    s, h, lengths = batch([size] * 3, tgt_size=1)
    memory, queries = attention.remember(h, lengths), attention.queries(s[:, 0])
    for end in range(1, size + 1):
        c, beta = attention.look_back(queries, memory, end)
        want = attention.attend(queries, replace(memory, lengths=torch.full_like(lengths, end)))
        same(Run(c, fit(beta, size), want.alpha), Run(*want))
        assert beta.dtype == want.beta.dtype and beta.shape == (3, end)


@pytest.mark.parametrize("threshold", [0.5, 0.9])
@torch.no_grad()
def test_seek_one_is_seek(name: str, threshold: float) -> None:
    attention = build(name)
    set_threshold(attention, threshold)
    s, h, _ = batch([9], tgt_size=6)
    whole, found = attention.remember(h, torch.tensor([9])), []
    for read, position, i in product(range(10), range(10), range(1, 7)):
        if position > read:
            continue
        memory, queries = replace(whole, lengths=torch.tensor([read])), attention.queries(s[:, i - 1])
        heads = Heads(torch.tensor([position]), torch.tensor([False]))
        want = attention.seek(queries, memory, heads, i)
        got = attention.seek_one(queries, memory, position, i)
        assert got == (int(want.position), bool(want.stopped))
        found.append(got[1])
    assert len(set(found)) == (2 if attention.streaming else 1)


# --- several heads --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@torch.no_grad()
def test_each_of_several_heads_is_a_head_alone(name: str, hard: bool) -> None:
    attention = build(name, OPTIONS._replace(chunk_size=3))
    _, _, lengths = batch()
    e, u = torch.randn(2, len(lengths), 2, 5, 7, dtype=torch.float64)  # (B, H, I, J)
    h = torch.randn(len(lengths), 2, 7, 4, dtype=torch.float64)  # (B, H, J, D)

    def run(h: Tensor, e: Tensor, u: Tensor) -> Tuple[Tensor, Tensor]:
        memory, stop = Memory(h, {}, lengths, {}), attention.stop
        start = torch.zeros_like(e[..., 0, :])
        start[..., 0] = 1.0
        seen = stop.seen(memory, 1, e.size(-2))
        if seen is not None:
            return attention.lookback.certain(u, seen), seen.last
        alpha = stop.expected(e, memory, AttentionState(start, 0), hard)
        return attention.lookback.expected(alpha, u, memory), alpha

    both = run(h, e, u)
    for head in range(2):
        for got, want in zip(both, run(h[:, head], e[:, head], u[:, head])):
            got = got[:, head] if got.dim() == 4 else got  # a fixed schedule is the same for all
            torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


# --- causality ----------------------------------------------------------------------------------------------------


def beyond(h: Tensor, cut: int) -> Tensor:
    """Another future: everything after the first `cut` tokens replaced."""
    return torch.cat((h[:, :cut], 10 * torch.randn_like(h[:, cut:])), dim=1)


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "saturated"])
@torch.no_grad()
def test_the_future_changes_nothing_that_has_been_written(name: str, hard: bool) -> None:
    attention = build(name, scale=4.0 if hard else 1e7)
    s, h, lengths = batch(RAGGED * 3)
    before = expected(attention, s, h, lengths, hard)
    for cut in range(1, h.size(1)):
        after = expected(attention, s, beyond(h, cut), lengths, hard)
        written = before.g <= cut
        same(Run(*(x[written] for x in after)), Run(*(x[written] for x in before)))
        read_on = ~written & (lengths > cut).unsqueeze(1)
        assert (after.g[read_on] > cut).all(), "what lies ahead cannot call back a READ"


@torch.no_grad()
def test_stopping_by_a_token_is_as_likely_in_every_future(name: str) -> None:
    attention = build(name)
    s, h, _ = batch([7, 7, 7])
    lengths = torch.full((3,), 7)
    before = expected(attention, s, h, lengths).alpha
    for cut in range(1, 7):
        after = expected(attention, s, beyond(h, cut), lengths).alpha
        torch.testing.assert_close(after[..., :cut], before[..., :cut], rtol=0, atol=1e-12)


def test_no_gradient_to_what_has_not_been_read(name: str) -> None:
    attention = build(name)
    s, h, lengths = batch()
    h.requires_grad_()
    run = expected(attention, s, h, lengths, hard=True)
    for i in range(s.size(1)):
        (grad,) = torch.autograd.grad(run.c[:, i].square().sum(), h, retain_graph=True)
        for b, stop in enumerate(run.g[:, i].int().tolist()):
            assert not grad[b, stop:].any()
            assert grad[b, stop - 1].any()


@torch.no_grad()
def test_decisions_and_contexts_ignore_the_buffer_beyond_what_was_read(name: str) -> None:
    attention = build(name)
    s, h, _ = batch([7] * 8, tgt_size=1)
    queries = attention.queries(s[:, 0])
    whole = attention.remember(h, torch.full((8,), 7))
    for read in range(1, 7):
        lengths = torch.full((8,), read)
        dirty = replace(whole, lengths=lengths)
        clean = attention.remember(h[:, :read], lengths)
        for i in (1, 2, 5):
            assert torch.equal(writes(attention, queries, dirty, i), writes(attention, queries, clean, i))
        got, want = attention.attend(queries, dirty), attention.attend(queries, clean)
        same(Run(got.c, fit(got.beta, read), fit(got.alpha, read)), Run(*want))


# --- batches ------------------------------------------------------------------------------------------------------


def gradients(attention: SimultaneousAttention, run: Run, lengths: Tensor) -> Dict[str, Tensor]:
    """Of a loss that all of the output has a part in.  Padding is weighed too: it must be zeros."""
    attention.zero_grad(set_to_none=True)
    loss = run.c.square().sum() + run.beta.square().sum() + len(lengths) * latency(run, lengths)
    if loss.requires_grad:
        loss.backward()
    return {key: torch.zeros_like(x) if x.grad is None else x.grad for key, x in attention.named_parameters()}


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "published form"])
def test_a_padded_batch_is_each_sentence_alone(name: str, exact: bool, hard: bool) -> None:
    attention = build(name, OPTIONS._replace(exact_alignment=exact))
    s, h, lengths = batch()
    together = expected(attention, s, h, lengths, hard)
    grad_together = gradients(attention, together, lengths)
    grad_alone = {key: torch.zeros_like(x) for key, x in attention.named_parameters()}
    for b, n in enumerate(lengths.tolist()):
        alone = expected(attention, s[b : b + 1], h[b : b + 1, :n], lengths[b : b + 1], hard)
        assert not together.alpha[b, :, n:].any() and not together.beta[b, :, n:].any()
        same(Run(together.c[b], together.beta[b, :, :n], together.alpha[b, :, :n]), Run(*(x[0] for x in alone)))
        for key, grad in gradients(attention, alone, lengths[b : b + 1]).items():
            grad_alone[key] += grad
    for key in grad_alone:
        torch.testing.assert_close(grad_together[key], grad_alone[key], rtol=1e-7, atol=1e-9, msg=key)


@torch.no_grad()
def test_decoding_a_batch_is_decoding_each_sentence_alone(name: str) -> None:
    attention = build(name)
    s, h, lengths = batch()
    together = incremental(attention, s, h, lengths)
    for b, n in enumerate(lengths.tolist()):
        alone = incremental(attention, s[b : b + 1], h[b : b + 1, :n], lengths[b : b + 1])
        same(Run(together.c[b], together.beta[b, :, :n], together.alpha[b, :, :n]), Run(*(x[0] for x in alone)))


@torch.no_grad()
def test_what_lies_in_padding_does_not_matter(name: str) -> None:
    attention = build(name)
    s, h, lengths = batch()
    clean = h.clone()
    for h_b, n in zip(clean, lengths):
        h_b[n:] = 0
    for hard in (True, False):
        same(expected(attention, s, h, lengths, hard), expected(attention, s, clean, lengths, hard))


@torch.no_grad()
def test_read_fills_the_row_of_each_sentence_and_grows(name: str) -> None:
    attention = build(name)
    _, h, _ = batch([9] * 4)
    memory = attention.nothing_read(4, h, room=1)
    everybody, turn = torch.arange(4), 0
    while (memory.lengths < 9).any():
        turn += 1
        reading = torch.tensor([True, turn % 2 == 0, turn % 3 == 0, turn > 9]) & (memory.lengths < 9)
        lengths = memory.lengths.clone()
        rows = everybody[reading]
        memory = attention.read(memory, h[rows, lengths[rows]], rows)
        assert memory.lengths.tolist() == (lengths + reading).tolist()
        assert memory.keys.keys() == attention.energies().keys()
        for b, n in enumerate(memory.lengths.tolist()):
            assert torch.equal(memory.h[b, :n], h[b, :n])
            for key, energy in attention.energies().items():
                torch.testing.assert_close(memory.keys[key][b, :n], energy.project(h[b, :n]), rtol=0, atol=1e-12)
    assert memory.h.size(1) < 2 * 9
    idle = attention.read(memory, h[:0, 0], everybody[:0])
    assert torch.equal(idle.lengths, memory.lengths) and torch.equal(idle.h, memory.h)


# --- probability and delay ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@pytest.mark.parametrize("bias", [-1000.0, -3.0, 0.0, 3.0])
@torch.no_grad()
def test_alpha_and_beta_are_distributions_and_delays_never_fall(name: str, bias: float, hard: bool) -> None:
    attention = build(name, bias=bias)
    s, h, lengths = batch(tgt_size=12)
    run = expected(attention, s, h, lengths, hard)
    for row in (run.alpha, run.beta):
        assert (row >= 0).all() and (row <= 1 + 1e-12).all()
        torch.testing.assert_close(row.sum(-1), torch.ones_like(run.g), rtol=0, atol=1e-12)
    assert (run.g >= 1 - 1e-12).all() and (run.g <= lengths.unsqueeze(1) + 1e-12).all()
    assert (run.g.diff(dim=1) >= -1e-12).all()
    if not attention.streaming or (bias == -1000.0 and learned_heads(attention)):
        assert (run.g == lengths.unsqueeze(1)).all(), "who never stops has read everything"


# --- learning -----------------------------------------------------------------------------------------------------


def nll(run: Run, lengths: Tensor) -> Tensor:
    """A likelihood of some target token given each context."""
    words = torch.linspace(-1, 1, 6 * run.c.size(-1), dtype=run.c.dtype).sin().view(-1, 6)
    return -torch.log_softmax(run.c @ words, dim=-1)[..., 0].float().mean()


def latency(run: Run, lengths: Tensor) -> Tensor:
    return differentiable_average_lagging(run.g, lengths, torch.full_like(lengths, run.g.size(1))).mean()


@pytest.mark.parametrize("loss", [nll, latency])
@pytest.mark.parametrize("training", [True, False], ids=["noise", "no noise"])
def test_every_parameter_learns(name: str, training: bool, loss: Callable[[Run, Tensor], Tensor]) -> None:
    attention = build_pair(PAIRS[name], OPTIONS).double().train(training)
    s, h, lengths = batch()
    learning: Iterable[torch.nn.Module] = [attention] if loss is nll else learned_heads(attention)
    value = loss(expected(attention, s, h, lengths), lengths)
    if value.requires_grad:
        value.backward()
    for module in learning:
        for key, parameter in module.named_parameters():
            assert parameter.grad is not None, key
            assert parameter.grad.isfinite().all() and parameter.grad.norm() > 1e-8, key


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "published form"])
def test_gradcheck_over_two_steps(name: str, exact: bool) -> None:
    attention = build(name, OPTIONS._replace(exact_alignment=exact), scale=1.0)
    s, h, lengths = batch([4, 2], tgt_size=2)
    h[1, 2:] = 0
    inputs = (s.requires_grad_(), h.requires_grad_(), *attention.parameters())
    assert gradcheck(lambda s, h, *_: tuple(expected(attention, s, h, lengths)), inputs, fast_mode=True)


@torch.no_grad()
def test_noise_is_for_training_alone(name: str) -> None:
    attention, quiet = build(name), build(name, OPTIONS._replace(noise=0.0))
    quiet.load_state_dict(attention.state_dict())
    s, h, lengths = batch()
    for hard in (True, False):
        same(expected(attention, s, h, lengths, hard), expected(attention, s, h, lengths, hard), atol=0.0)
        same(expected(attention, s, h, lengths, hard), expected(quiet.train(), s, h, lengths, hard), atol=0.0)
    calm = expected(attention, s, h, lengths)
    attention.train()
    same(expected(attention, s, h, lengths, hard=True), expected(quiet, s, h, lengths, hard=True), atol=0.0)
    noisy = expected(attention, s, h, lengths), expected(attention, s, h, lengths)
    is_noisy = bool(learned_heads(attention))
    assert torch.equal(noisy[0].alpha, noisy[1].alpha) != is_noisy
    assert torch.equal(noisy[0].alpha, calm.alpha) != is_noisy


# --- half precision -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("dtype", [torch.bfloat16, FLOAT16])
@pytest.mark.parametrize("autocast", [False, True], ids=["half weights", "autocast"])
def test_half_precision(name: str, autocast: bool, dtype: torch.dtype, scale: float) -> None:
    attention = build(name, scale=scale).to(torch.float32 if autocast else dtype).train()
    s, h, lengths = (x if x.dtype == torch.long else x.to(torch.float32 if autocast else dtype) for x in batch())
    h.requires_grad_()
    with torch.autocast("cpu", dtype=dtype, enabled=autocast):
        assert attention.begin(attention.remember(h, lengths)).alpha.dtype == torch.float32
        for hard in (True, False):
            run = expected(attention, s, h, lengths, hard)
            assert run.alpha.dtype == run.beta.dtype == run.g.dtype == torch.float32
            assert all(x.isfinite().all() for x in run)
            torch.testing.assert_close(run.beta.sum(-1), torch.ones_like(run.g), rtol=0, atol=1e-5)
    (nll(run, lengths) + latency(run, lengths)).backward()
    for key, x in (("h", h), *attention.named_parameters()):
        assert x.grad is not None and x.grad.isfinite().all(), key


@pytest.mark.parametrize("dtype", [pytest.param(torch.bfloat16, marks=needs_equal_rows), FLOAT16])
@torch.no_grad()
def test_decoding_in_half_precision(name: str, dtype: torch.dtype) -> None:
    attention = build(name).to(dtype)
    set_threshold(attention, 0.7)
    s, h, lengths = (x if x.dtype == torch.long else x.to(dtype) for x in batch(RAGGED * 30))
    got, want = incremental(attention, s, h, lengths), expected(attention, s, h, lengths, hard=True)
    assert got.alpha.dtype == got.beta.dtype == torch.float32 and got.c.dtype == dtype
    assert torch.equal(got.g, want.g)
    torch.testing.assert_close(got.beta, want.beta, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, FLOAT16])
@torch.no_grad()
def test_half_precision_does_not_round_the_threshold(name: str, dtype: torch.dtype) -> None:
    attention = build(name, scale=0.0).to(dtype)
    s, h, lengths = (x if x.dtype == torch.long else x.to(dtype) for x in batch())
    for threshold in (0.1, 0.3, 0.4, 0.6, 0.7, 0.9):
        set_threshold(attention, threshold)
        for head in learned_heads(attention):
            head.r.fill_(torch.logit(torch.tensor(threshold, dtype=torch.float64)))  # e: the limit, rounded up or down
        assert torch.equal(incremental(attention, s, h, lengths).g, expected(attention, s, h, lengths, hard=True).g)
