"""beta against the double sum of the paper in float64, against every Bernoulli table, and at its extremes."""

import math
from typing import Callable, Optional, Tuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from fairseq_milk.functional import chunkwise_lookback, expected_alignment, infinite_lookback
from fairseq_milk.functional.lookback import prefix_softmax
from tests.support import oracles
from tests.support.torch_features import FLOAT16

WINDOWS = [None, 1, 2, 5]


def lookback(alpha: Tensor, u: Tensor, window: Optional[int], src_lengths: Optional[Tensor] = None) -> Tensor:
    if window is None:
        return infinite_lookback(alpha, u, src_lengths)
    return chunkwise_lookback(alpha, u, window, src_lengths)


def stop_distributions(batch_size: int, src_size: int) -> Tensor:
    """Rows of alpha that each sum to 1: spread out, nearly one-hot, early and late."""
    scale = torch.tensor([0.0, 1.0, 5.0, 30.0]).repeat(batch_size)[:batch_size, None]
    drift = torch.linspace(-8, 8, src_size) * torch.tensor([1.0, -1.0, 0.0]).repeat(batch_size)[:batch_size, None]
    return torch.softmax(torch.randn(batch_size, src_size) * scale + drift, -1)


def normal(scale: float) -> Callable[[int, int], Tensor]:
    return lambda b, j: torch.randn(b, j) * scale


ENERGIES = {
    "normal 1": normal(1.0),
    "normal 8": normal(8.0),
    "normal 40": normal(40.0),
    "constant": lambda b, j: torch.zeros(b, j),
    "rising to 300": lambda b, j: torch.linspace(-300, 300, j).expand(b, j).clone(),
    "falling to -300": lambda b, j: torch.linspace(300, -300, j).expand(b, j).clone(),
    "uniform +-300": lambda b, j: torch.rand(b, j) * 600 - 300,
    "+300 or -300": lambda b, j: torch.where(torch.rand(b, j) < 0.5, torch.tensor(300.0), torch.tensor(-300.0)),
    "a peak at the end": lambda b, j: torch.randn(b, j) - 300 * (torch.arange(j) < j - 1),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("src_size", [1, 10, 100])
@pytest.mark.parametrize("energy", list(ENERGIES))
def test_beta_and_gradient(energy: str, src_size: int, window: Optional[int]) -> None:
    compare_with_oracle(energy, src_size, window)


@pytest.mark.parametrize("window", [None, 8])
@pytest.mark.parametrize("energy", ["normal 8", "uniform +-300"])
def test_beta_and_gradient_of_a_thousand_tokens(energy: str, window: Optional[int]) -> None:
    compare_with_oracle(energy, 1000, window)


def compare_with_oracle(energy: str, src_size: int, window: Optional[int]) -> None:
    lengths = torch.linspace(src_size, max(1, src_size // 3), 8).long()
    alpha = stop_distributions(8, src_size)
    alpha = alpha * (torch.arange(src_size) < lengths[:, None])
    alpha = (alpha / alpha.sum(-1, keepdim=True)).requires_grad_()
    u = ENERGIES[energy](8, src_size).requires_grad_()
    alpha_oracle, u_oracle = (x.detach().double().requires_grad_() for x in (alpha, u))

    beta = lookback(alpha, u, window, lengths)
    truth = oracles.lookback(alpha_oracle, u_oracle, window, lengths.tolist())
    assert beta.dtype == torch.float32
    assert (beta - truth).abs().max() < 1e-6
    assert (beta.double().sum(-1) - 1).abs().max() < 1e-6

    weights = torch.randn(8, src_size)
    grads = torch.autograd.grad((beta * weights).sum(), (alpha, u))
    grads_oracle = torch.autograd.grad((truth * weights).sum(), (alpha_oracle, u_oracle))
    for grad, grad_oracle in zip(grads, grads_oracle):
        assert torch.isfinite(grad).all()
        assert (grad - grad_oracle).abs().max() < 1e-5 * max(1.0, float(grad_oracle.abs().max()))


@pytest.mark.parametrize("preserve_mass", [True, False])
@pytest.mark.parametrize("window", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("tgt_size, src_size", [(3, 4), (3, 3), (2, 2)])
def test_beta_and_context_are_what_all_bernoulli_tables_give(
    tgt_size: int, src_size: int, window: Optional[int], preserve_mass: bool
) -> None:
    e, u = torch.randn(2, tgt_size, src_size, dtype=torch.float64) * 2
    h = torch.randn(src_size, 3, dtype=torch.float64)
    p = torch.sigmoid(e).tolist()
    alpha, rows = oracles.first_alpha(1, src_size), []
    for e_i, u_i in zip(e, u):
        alpha = expected_alignment(e_i.unsqueeze(0), alpha, preserve_mass=preserve_mass)
        rows.append(lookback(alpha, u_i.unsqueeze(0), window)[0])
    beta = torch.stack(rows)
    assert torch.allclose(beta, oracles.enumerated_beta(p, u, window, preserve_mass), atol=1e-12, rtol=0)
    c = oracles.enumerated_context(p, u, h, window, preserve_mass)
    assert torch.allclose(beta @ h, c, atol=1e-12, rtol=0)
    assert torch.allclose(oracles.context(beta, h.expand(tgt_size, -1, -1)), c, atol=1e-12, rtol=0)


@pytest.mark.parametrize("window", WINDOWS)
def test_gradcheck(window: Optional[int]) -> None:
    lengths = torch.tensor([7, 4, 1])
    alpha = torch.rand(3, 7, dtype=torch.float64, requires_grad=True)
    u = (torch.randn(3, 7, dtype=torch.float64) * 2).requires_grad_()
    assert gradcheck(lambda a, u: lookback(a, u, window, lengths), (alpha, u))
    assert gradcheck(lambda a, u: lookback(a, u, window), (alpha, u))


def test_limits() -> None:
    """w = 1 is monotonic attention, w >= |x| is MILk, a stop at |x| is softmax attention."""
    alpha, u = stop_distributions(6, 9), torch.randn(6, 9) * 3
    assert torch.allclose(chunkwise_lookback(alpha, u, 1), alpha, atol=1e-7)
    for window in (9, 10, 1000):
        assert torch.equal(chunkwise_lookback(alpha, u, window), infinite_lookback(alpha, u))
    # the same limit without the shortcut: the row is longer than the window, the sentences are not
    lengths = torch.tensor([5, 5, 4, 3, 2, 1])
    alpha = expected_alignment(u, alpha * (torch.arange(9) < lengths[:, None]), lengths)
    assert torch.allclose(chunkwise_lookback(alpha, u, 5, lengths), infinite_lookback(alpha, u, lengths), atol=1e-6)
    last = torch.zeros(6, 9)
    last[:, -1] = 1.0
    assert torch.allclose(infinite_lookback(last, u), u.softmax(-1), atol=1e-7)


@pytest.mark.parametrize("window", [None, 1, 3])
def test_prefix_softmax_is_the_lookback_of_a_known_stop(window: Optional[int]) -> None:
    stops, u = torch.arange(1, 7), torch.randn(6, 6) * 3
    one_hot = torch.eye(6)
    beta = prefix_softmax(u, stops, window)
    assert torch.allclose(beta, lookback(one_hot, u, window), atol=1e-6)
    for b, stop in enumerate(stops.tolist()):
        assert torch.allclose(beta[b].double(), oracles.weights_at_stop(u[b], stop, window), atol=1e-6)


def test_lost_mass_stays_lost() -> None:
    alpha, u = stop_distributions(6, 9) * torch.rand(6, 1), torch.randn(6, 9)
    for window in WINDOWS:
        assert torch.allclose(lookback(alpha, u, window).sum(-1), alpha.sum(-1), atol=1e-6)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("garbage", [1e30, -1e30, 300.0, 3e38, -3e38])
def test_padding(window: Optional[int], garbage: float) -> None:
    lengths = torch.tensor([9, 7, 5, 4, 2, 1])
    padding = torch.arange(9) >= lengths[:, None]
    clean = torch.randn(6, 9)
    u = clean.masked_fill(padding, garbage).requires_grad_()
    alpha = stop_distributions(6, 9).requires_grad_()  # with values in the padding too
    weights = torch.randn(6, 9)
    beta = lookback(alpha, u, window, lengths)
    (beta * weights).sum().backward()
    assert u.grad is not None and alpha.grad is not None
    for b, n in enumerate(lengths.tolist()):
        u_alone = clean[b : b + 1, :n].clone().requires_grad_()
        alpha_alone = alpha[b : b + 1, :n].detach().requires_grad_()
        alone = lookback(alpha_alone, u_alone, window)
        (alone * weights[b, :n]).sum().backward()
        assert u_alone.grad is not None and alpha_alone.grad is not None
        assert torch.allclose(beta[b, :n], alone[0], atol=1e-6)
        assert torch.allclose(u.grad[b, :n], u_alone.grad[0], atol=1e-6)
        assert torch.allclose(alpha.grad[b, :n], alpha_alone.grad[0], atol=1e-6)
        assert not beta[b, n:].any() and not u.grad[b, n:].any() and not alpha.grad[b, n:].any()


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(window: Optional[int], dtype: torch.dtype) -> None:
    alpha = stop_distributions(6, 30)  # float32, as the alignment gives it
    u = (torch.randn(6, 30) * 8).to(dtype).requires_grad_()
    beta = lookback(alpha, u, window)
    assert beta.dtype == torch.float32
    assert (beta - oracles.lookback(alpha, u.detach(), window)).abs().max() < 1e-6
    beta.square().sum().backward()
    assert u.grad is not None and u.grad.dtype == dtype and torch.isfinite(u.grad).all()
    both = lookback(alpha.to(dtype), u.detach(), window)
    assert both.dtype == torch.float32
    assert (both - oracles.lookback(alpha.to(dtype), u.detach(), window)).abs().max() < 1e-6


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype", [FLOAT16, torch.bfloat16])
def test_autocast_changes_nothing(window: Optional[int], dtype: torch.dtype) -> None:
    alpha, u = stop_distributions(6, 30), (torch.randn(6, 30) * 8).to(dtype)
    with torch.autocast("cpu", dtype=dtype):
        beta = lookback(alpha, u, window)
    assert torch.equal(beta, lookback(alpha, u, window))


@pytest.mark.parametrize("window", WINDOWS)
def test_energies_wider_than_alpha(window: Optional[int]) -> None:
    """The constant that masks padding in float64 must not become -inf in float32."""
    lengths = torch.tensor([9, 4, 1])
    alpha = stop_distributions(3, 9) * (torch.arange(9) < lengths[:, None])
    u = torch.randn(3, 9, dtype=torch.float64)
    beta = lookback(alpha, u, window, lengths)
    assert beta.dtype == torch.float32
    assert (beta - oracles.lookback(alpha, u, window, lengths.tolist())).abs().max() < 1e-6


def test_beyond_its_range_it_stays_a_distribution() -> None:
    u = torch.tensor([[0.0, 1.0, 2000.0, -1e30, 1e30]]).requires_grad_()
    alpha = torch.full((1, 5), 0.2)
    beta = infinite_lookback(alpha, u)
    assert beta.sum().item() == pytest.approx(1.0, abs=1e-6) and beta.min() >= 0
    beta.square().sum().backward()
    assert u.grad is not None and torch.isfinite(u.grad).all()


@pytest.mark.parametrize("chunk_size", [0, -1])
def test_a_chunk_has_at_least_one_token(chunk_size: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        chunkwise_lookback(torch.ones(1, 1), torch.ones(1, 1), chunk_size)


@st.composite
def cases(draw: st.DrawFn) -> Tuple[Tensor, Tensor, Tensor, Optional[int]]:
    """alpha and u: (B, J), lengths, window."""
    batch_size, src_size = draw(st.integers(1, 4)), draw(st.integers(1, 33))
    size = batch_size * src_size
    hard = st.sampled_from([0.0, math.inf, -math.inf, 50.0, -50.0])
    e = draw(st.lists(st.one_of(hard, st.floats(-10, 10, width=16)), min_size=size, max_size=size))
    extreme = st.sampled_from([0.0, 300.0, -300.0, 80.0, -80.0])
    u = draw(st.lists(st.one_of(extreme, st.floats(-300, 300, width=16)), min_size=size, max_size=size))
    lengths = torch.tensor(draw(st.lists(st.integers(1, src_size), min_size=batch_size, max_size=batch_size)))
    dtype = draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]))
    alpha = expected_alignment(
        torch.tensor(e).view(batch_size, src_size), oracles.first_alpha(batch_size, src_size).float(), lengths
    )
    window = draw(st.one_of(st.none(), st.integers(1, src_size + 1)))
    return alpha, torch.tensor(u).view(batch_size, src_size).to(dtype), lengths, window


@given(cases())
def test_always_a_distribution(case: Tuple[Tensor, Tensor, Tensor, Optional[int]]) -> None:
    alpha, u, lengths, window = case
    alpha, u = alpha.detach().requires_grad_(), u.detach().requires_grad_()
    beta = lookback(alpha, u, window, lengths)
    assert torch.isfinite(beta).all() and beta.min() >= 0
    assert (beta.sum(-1) - 1).abs().max() < 2e-6
    truth = oracles.lookback(alpha.detach(), u.detach(), window, lengths.tolist())
    assert (beta - truth).abs().max() < 1e-6
    beta.square().sum().backward()
    assert alpha.grad is not None and torch.isfinite(alpha.grad).all()
    assert u.grad is not None and torch.isfinite(u.grad).all()
