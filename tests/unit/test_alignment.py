"""alpha against the recurrence of the paper in float64, against every Bernoulli table, and at its extremes."""

import math
from typing import Callable, List, Optional, Tuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from fairseq_milk.functional import expected_alignment, expected_alignment_parallel, expected_delays, last_position
from fairseq_milk.functional.alignment import linear_scan
from tests.support import oracles

Step = Callable[..., Tensor]
REGIMES = [(scale, mean) for scale in (1.0, 2.0, 4.0, 8.0, 20.0) for mean in (0.0, -4.0)]


def chain(step: Step, e: Tensor, src_lengths: Optional[Tensor] = None, preserve_mass: bool = True) -> Tensor:
    """alpha_1 .. alpha_I, each computed from the one before.  e: (B, I, J) -> (B, I, J)."""
    alpha = oracles.first_alpha(e.size(0), e.size(2)).to(e.dtype)
    rows = []
    for e_i in e.unbind(1):
        alpha = step(e_i, alpha, src_lengths, preserve_mass)
        rows.append(alpha)
    return torch.stack(rows, dim=1)


def ragged(batch_size: int, src_size: int) -> Tensor:
    """Lengths from the full row down to a third of it, and one sentence of a single token."""
    lengths = torch.linspace(src_size, max(1, src_size // 3), batch_size).long()
    lengths[-1] = 1
    return lengths


def relative_error(value: Tensor, truth: Tensor) -> float:
    """The largest error relative to the largest entry of the truth; if that is zero, every entry must be zero."""
    error, size = float((value.double() - truth).abs().max()), float(truth.abs().max())
    return error / size if size > 0 else (0.0 if error == 0 else math.inf)


@pytest.mark.slow
@pytest.mark.parametrize("tgt_size, src_size", [(50, 10), (50, 30), (50, 100), (50, 1000), (1, 1), (3, 2)])
def test_alpha_and_gradient_over_fifty_steps(tgt_size: int, src_size: int) -> None:
    copies = 1 if src_size == 1000 else 3
    regimes = torch.tensor(REGIMES * copies + [(4.0, -1.0)])
    lengths = ragged(len(regimes), src_size)
    noise = torch.randn(len(regimes), tgt_size, src_size)
    e = (noise * regimes[:, :1, None] + regimes[:, 1:, None]).requires_grad_()
    e_oracle = e.detach().double().requires_grad_()

    alpha, truth = chain(expected_alignment, e, lengths), oracles.alignment(e_oracle, lengths.tolist())
    assert alpha.dtype == torch.float32
    assert (alpha - truth).abs().max() < 2e-6
    assert (alpha.double().sum(-1) - 1).abs().max() < 2e-6
    assert (expected_delays(alpha) - oracles.delays(truth)).abs().max() < 2e-6 * src_size

    # one loss weights every entry, the other uses the delays only
    weights = torch.randn_like(noise)
    loss, loss_oracle = (alpha * weights).sum(), (truth * weights).sum()
    (grad,) = torch.autograd.grad(loss, e, retain_graph=True)
    (grad_oracle,) = torch.autograd.grad(loss_oracle, e_oracle, retain_graph=src_size < 1000)
    assert torch.isfinite(grad).all()
    for b, regime in enumerate(regimes.tolist()):
        assert relative_error(grad[b], grad_oracle[b]) < 3e-5, regime
    if src_size < 1000:
        (grad,) = torch.autograd.grad(expected_delays(alpha).sum(), e)
        (grad_oracle,) = torch.autograd.grad(oracles.delays(truth).sum(), e_oracle)
        assert relative_error(grad, grad_oracle) < 3e-5


@pytest.mark.parametrize("preserve_mass", [True, False])
def test_gradient_of_the_previous_alignment(preserve_mass: bool) -> None:
    lengths = ragged(6, 40)
    e = torch.randn(6, 40) * 3
    alpha_prev = torch.softmax(torch.randn(6, 40), -1).requires_grad_()
    prev_oracle = alpha_prev.detach().double().requires_grad_()
    weights = torch.randn(6, 40)
    (expected_alignment(e, alpha_prev, lengths, preserve_mass) * weights).sum().backward()
    (oracles.alignment_step(e, prev_oracle, lengths.tolist(), preserve_mass) * weights).sum().backward()
    assert alpha_prev.grad is not None and prev_oracle.grad is not None
    assert relative_error(alpha_prev.grad, prev_oracle.grad) < 1e-6


@pytest.mark.parametrize("preserve_mass", [True, False])
@pytest.mark.parametrize("tgt_size, src_size", [(3, 4), (3, 3), (2, 4), (3, 1)])
@pytest.mark.parametrize("scale", [1.0, 6.0])
def test_alpha_is_what_all_bernoulli_tables_give(
    tgt_size: int, src_size: int, scale: float, preserve_mass: bool
) -> None:
    e = torch.randn(tgt_size, src_size, dtype=torch.float64) * scale
    p = torch.sigmoid(e).tolist()
    alpha = chain(expected_alignment, e.unsqueeze(0), None, preserve_mass)[0]
    assert torch.allclose(alpha, oracles.enumerated_alpha(p, preserve_mass), atol=1e-12, rtol=0)
    if preserve_mass:
        assert torch.allclose(expected_delays(alpha), oracles.enumerated_delays(p), atol=1e-12, rtol=0)


def test_without_preserved_mass_the_row_lacks_what_ran_off_the_end() -> None:
    lengths, e = ragged(8, 12), torch.randn(8, 5, 12, dtype=torch.float64) - 2
    alpha = chain(expected_alignment, e, lengths, preserve_mass=False)
    lost = torch.zeros(8, 5, dtype=torch.float64)
    for b, n in enumerate(lengths.tolist()):
        alpha_prev, ran_off = oracles.first_alpha(1, n)[0], 0.0
        for i in range(5):
            p = torch.sigmoid(e[b, i, :n])
            # a head at k passes every token from k on
            ran_off += sum(float(alpha_prev[k] * torch.prod(1 - p[k:])) for k in range(n))
            lost[b, i], alpha_prev = ran_off, alpha[b, i, :n]
    assert lost.min() > 0.01
    assert torch.allclose(alpha.sum(-1), 1 - lost, atol=1e-12, rtol=0)


@pytest.mark.parametrize("preserve_mass", [True, False])
def test_gradcheck(preserve_mass: bool) -> None:
    lengths = torch.tensor([7, 4, 1])
    e = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    alpha_prev = torch.rand(3, 7, dtype=torch.float64, requires_grad=True)
    for step in (expected_alignment, expected_alignment_parallel):
        assert gradcheck(lambda e, a, step=step: step(e, a, lengths, preserve_mass), (e, alpha_prev))
        assert gradcheck(lambda e, a, step=step: step(e, a, None, preserve_mass), (e, alpha_prev))


@pytest.mark.parametrize("preserve_mass", [True, False])
def test_several_steps_at_once_are_the_steps_one_by_one(preserve_mass: bool) -> None:
    lengths, energies, weight = ragged(4, 9), torch.randn(4, 5, 9), torch.randn(4, 5, 9)
    one_by_one, at_once = energies.clone().requires_grad_(), energies.clone().requires_grad_()
    expected = chain(expected_alignment, one_by_one, lengths, preserve_mass)
    alpha = expected_alignment(at_once, oracles.first_alpha(4, 9).float(), lengths, preserve_mass)
    (expected * weight).sum().backward()
    (alpha * weight).sum().backward()
    assert torch.equal(alpha, expected)
    assert at_once.grad is not None and one_by_one.grad is not None
    assert torch.allclose(at_once.grad, one_by_one.grad, rtol=1e-6, atol=1e-8)


def test_second_derivatives_are_refused_rather_than_wrong() -> None:
    e = torch.randn(2, 5, requires_grad=True)
    alpha = expected_alignment(e, oracles.first_alpha(2, 5).float())
    (grad,) = torch.autograd.grad(alpha.square().sum(), e, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize("src_size", [1, 2, 3, 7, 8, 9, 64, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_linear_scan_is_the_loop(src_size: int, reverse: bool) -> None:
    a, b = torch.randn(2, 3, src_size, dtype=torch.float64)
    truth = b.clone()
    for j in range(1, src_size):
        if reverse:
            truth[:, -1 - j] += a[:, -1 - j] * truth[:, -j]
        else:
            truth[:, j] += a[:, j - 1] * truth[:, j - 1]
    assert torch.allclose(linear_scan(a, b, reverse), truth, rtol=1e-9)


# --- the closed form and what it loses ----------------------------------------------------------------------------


def burst(src_size: int, head: int, p: float) -> Tuple[Tensor, Tensor]:
    """Energies for a head at position `head` (from 0) where every token, also those already passed, has a high p."""
    alpha_prev = torch.zeros(1, src_size)
    alpha_prev[0, head] = 1.0
    return torch.full((1, src_size), math.log(p / (1 - p))), alpha_prev


@pytest.mark.parametrize(
    "head, p, kept",  # style.md, section 5: what the published form keeps with its clip of 1e-10
    [(5, 0.99, 1.0), (10, 0.9, 1.0), (10, 0.99, 0.0), (20, 0.7, 0.3487), (20, 0.9, 0.0)],
)
def test_a_burst_keeps_its_mass_and_the_closed_form_loses_it(head: int, p: float, kept: float) -> None:
    src_size = 60
    e, alpha_prev = burst(src_size, head, p)
    truth = oracles.alignment_step(e, alpha_prev)
    exact = expected_alignment(e, alpha_prev)
    assert (exact - truth).abs().max() < 1e-6

    lossy = expected_alignment_parallel(e, alpha_prev, preserve_mass=False)
    assert float(lossy.sum()) == pytest.approx(kept, abs=2e-3)
    # with the mass preserved both rows sum to 1: a test of the mass alone would pass although the delay is wrong
    published = expected_alignment_parallel(e, alpha_prev)
    assert float(published.sum()) == pytest.approx(1.0, abs=1e-6)
    fiction = kept * oracles.delays(truth) + (1 - kept) * src_size
    assert float(expected_delays(exact)) == pytest.approx(float(oracles.delays(truth)), abs=1e-4)
    assert float(expected_delays(published)) == pytest.approx(float(fiction), rel=2e-2)


def test_burst_schedule() -> None:
    """Wait for ten tokens, then write eight in a row: a near-binary policy whose passed tokens have a high p."""
    e = torch.full((1, 8, 30), 6.0)
    e[:, 0, :10] = -6.0
    truth = oracles.alignment(e)
    exact, published = chain(expected_alignment, e), chain(expected_alignment_parallel, e)
    assert (exact - truth).abs().max() < 1e-6
    assert 10.5 < float(oracles.delays(truth).max()) < 11.5
    assert (published.sum(-1) - 1).abs().max() < 1e-6  # the mass alone does not show the error
    assert float(expected_delays(published)[0, -1]) > 25  # the lost mass was moved to the end of the sentence


@pytest.mark.parametrize("preserve_mass", [True, False])
def test_closed_form_agrees_on_its_domain(preserve_mass: bool) -> None:
    """prod (1 - p) stays above the clip: low p, or high p only ahead of the head."""
    lengths, e = ragged(8, 20), torch.randn(8, 10, 20) * 0.5 - 1.5
    truth = oracles.alignment(e, lengths.tolist(), preserve_mass)
    assert (chain(expected_alignment_parallel, e, lengths, preserve_mass) - truth).abs().max() < 1e-5
    assert (chain(expected_alignment, e, lengths, preserve_mass) - truth).abs().max() < 2e-6


def test_saturated_heads_keep_their_gradient() -> None:
    """p = 1 - 1e-7 and closer: in float32 the subtraction 1 - p would lose all digits."""
    e = (torch.rand(4, 20) * 6 + 15).requires_grad_()
    e_oracle = e.detach().double().requires_grad_()
    alpha_prev, weights = torch.softmax(torch.randn(4, 20), -1), torch.randn(4, 20)
    (expected_alignment(e, alpha_prev) * weights).sum().backward()
    (oracles.alignment_step(e_oracle, alpha_prev) * weights).sum().backward()
    assert e.grad is not None and e_oracle.grad is not None
    assert relative_error(e.grad, e_oracle.grad) < 1e-5


# --- padding and precision ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [expected_alignment, expected_alignment_parallel])
@pytest.mark.parametrize("preserve_mass", [True, False])
def test_padding(step: Step, preserve_mass: bool) -> None:
    """Padding changes neither values nor gradients, and gets zeros itself."""
    lengths, clean = ragged(6, 15), torch.randn(6, 4, 15)
    padding = ~torch.zeros(6, 15).bool()
    for b, n in enumerate(lengths.tolist()):
        padding[b, :n] = False
    garbage = torch.where(torch.rand(6, 4, 15) < 0.5, torch.tensor(1e30), torch.tensor(-1e30))
    e = torch.where(padding.unsqueeze(1), garbage, clean).requires_grad_()
    alpha = chain(step, e, lengths, preserve_mass)
    weights = torch.randn(6, 4, 15)
    (alpha * weights).sum().backward()
    assert e.grad is not None
    for b, n in enumerate(lengths.tolist()):
        alone = clean[b : b + 1, :, :n].clone().requires_grad_()
        alpha_alone = chain(step, alone, None, preserve_mass)
        (alpha_alone * weights[b, :, :n]).sum().backward()
        assert alone.grad is not None
        assert torch.allclose(alpha[b, :, :n], alpha_alone[0], atol=1e-6)
        assert torch.allclose(e.grad[b, :, :n], alone.grad[0], atol=1e-6)
        assert not alpha[b, :, n:].any() and not e.grad[b, :, n:].any()


def test_residual_goes_to_the_last_token_of_each_sentence() -> None:
    lengths = torch.tensor([5, 3, 1])
    never = torch.full((3, 5), -math.inf)
    one_hot = torch.zeros(3, 5)
    one_hot[torch.arange(3), lengths - 1] = 1.0
    assert torch.equal(expected_alignment(never, oracles.first_alpha(3, 5).float(), lengths), one_hot)
    assert torch.equal(last_position(lengths, never).float(), one_hot)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("step", [expected_alignment, expected_alignment_parallel])
def test_half_precision_is_computed_and_carried_in_float32(step: Step, dtype: torch.dtype) -> None:
    e = (torch.randn(4, 50, 20) * 0.5 - 1.5).to(dtype).requires_grad_()
    alpha = oracles.first_alpha(4, 20).to(dtype)
    rows: List[Tensor] = []
    for e_i in e.unbind(1):
        alpha = step(e_i, alpha)
        rows.append(alpha)
    result = torch.stack(rows, dim=1)
    assert result.dtype == torch.float32
    assert (result - oracles.alignment(e.detach())).abs().max() < (2e-6 if step is expected_alignment else 1e-5)
    result[:, -1].square().sum().backward()
    assert e.grad is not None and e.grad.dtype == dtype and torch.isfinite(e.grad).all()


def test_autocast_leaves_it_in_float32() -> None:
    e = torch.randn(4, 6, 20) * 3
    with torch.autocast("cpu", dtype=torch.bfloat16):
        alpha = chain(expected_alignment, e)
    assert torch.equal(alpha, chain(expected_alignment, e))


# --- any shape, any length, any energy ----------------------------------------------------------------------------

ENERGY = st.one_of(
    st.sampled_from([0.0, -0.0, 88.0, -88.0, 104.0, -104.0, 1e4, -1e4, 3e38, -3e38, math.inf, -math.inf]),
    st.floats(-30, 30, width=16),
)


@st.composite
def energies(draw: st.DrawFn) -> Tuple[Tensor, Tensor]:
    """(B, I, J) energies of one dtype, with lengths."""
    batch_size, tgt_size, src_size = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 17))
    size = batch_size * tgt_size * src_size
    values = draw(st.lists(ENERGY, min_size=size, max_size=size))
    lengths = draw(st.lists(st.integers(1, src_size), min_size=batch_size, max_size=batch_size))
    dtype = draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]))
    e = torch.tensor(values, dtype=torch.float64).view(batch_size, tgt_size, src_size)
    return e.to(dtype), torch.tensor(lengths)


@given(energies())
def test_always_a_distribution_that_moves_forward(case: Tuple[Tensor, Tensor]) -> None:
    e, lengths = case
    e = e.detach().requires_grad_()
    alpha = chain(expected_alignment, e, lengths)
    assert torch.isfinite(alpha).all()
    assert alpha.min() >= 0 and alpha.max() <= 1 + 1e-6
    assert (alpha.sum(-1) - 1).abs().max() < 2e-6
    g = expected_delays(alpha)
    assert (g[:, 1:] - g[:, :-1]).numel() == 0 or (g[:, 1:] - g[:, :-1]).min() > -1e-5
    assert (g >= 1 - 1e-5).all() and (g <= lengths.unsqueeze(1) + 1e-4).all()
    assert (alpha - oracles.alignment(e.detach(), lengths.tolist())).abs().max() < 2e-6
    g.sum().backward()
    assert e.grad is not None and torch.isfinite(e.grad).all()


@given(energies())
def test_without_preserved_mass_it_only_loses(case: Tuple[Tensor, Tensor]) -> None:
    e, lengths = case
    e = e.detach().requires_grad_()
    alpha = chain(expected_alignment, e, lengths, preserve_mass=False)
    mass = torch.cat((torch.ones(e.size(0), 1), alpha.sum(-1)), dim=1)
    assert torch.isfinite(alpha).all() and alpha.min() >= 0
    assert (mass[:, 1:] - mass[:, :-1]).max() < 1e-6
    assert (alpha - oracles.alignment(e.detach(), lengths.tolist(), preserve_mass=False)).abs().max() < 2e-6
    alpha.square().sum().backward()
    assert e.grad is not None and torch.isfinite(e.grad).all()


@given(energies())
def test_closed_form_is_wrong_but_never_invalid(case: Tuple[Tensor, Tensor]) -> None:
    e, lengths = case
    e = e.detach().requires_grad_()
    alpha = chain(expected_alignment_parallel, e, lengths)
    assert torch.isfinite(alpha).all() and alpha.min() >= 0
    assert (alpha.sum(-1) - 1).abs().max() < 1e-5
    expected_delays(alpha).sum().backward()
    assert e.grad is not None and torch.isfinite(e.grad).all()
