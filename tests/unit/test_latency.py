"""Delays and AP, AL, DAL against the paper's own recurrences and the golden table."""

from fractions import Fraction
from typing import Any, Callable, List, Tuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from fairseq_milk.functional import (
    average_lagging,
    average_proportion,
    differentiable_average_lagging,
    expected_delays,
    wait_k_delays,
)
from tests.support import oracles
from tests.support.torch_features import FLOAT16

Metric = Callable[[Tensor, Tensor, Tensor], Tensor]
PAIRS: List[Tuple[Metric, Callable[..., Any]]] = [
    (average_proportion, oracles.average_proportion),
    (average_lagging, oracles.average_lagging),
    (differentiable_average_lagging, oracles.differentiable_average_lagging),
]

# delays, |x|, AL, DAL, AP: the tables of the paper, then cases worked out by hand (model-details.md, section 5)
GOLDEN = [
    ([3, 4, 4, 4], 4, "3", "3", "15/16"),
    ([1, 2], 2, "1", "1", "3/4"),
    ([6, 6, 6, 6], 6, "6", "6", "1"),
    ([1, 1, 2, 3, 5, 7, 7, 9], 9, "7/16", "73/64", "35/72"),
    ([5, 7, 9], 9, "4", "5", "7/9"),
    ([3, 4, 4, 4, 4, 4, 4, 4], 4, "13/4", "55/16", "31/32"),
    ([3, 4, 5, 6], 8, "3/2", "3", "9/16"),
    ([1, 1, 1, 4], 4, "1/4", "1", "7/16"),
    ([1, 4, 4, 4, 5, 6], 6, "3/2", "8/3", "2/3"),
    ([2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10], 10, "83/55", "2", "3/5"),
    ([1], 1, "1", "1", "1"),
]


@pytest.mark.parametrize("g, src_length, al, dal, ap", GOLDEN)
def test_golden_table(g: List[int], src_length: int, al: str, dal: str, ap: str) -> None:
    values = (torch.tensor([g], dtype=torch.float64), torch.tensor([src_length]), torch.tensor([len(g)]))
    for (metric, oracle), expected in zip(PAIRS, (ap, al, dal)):
        assert oracle([Fraction(g_i) for g_i in g], Fraction(src_length)) == Fraction(expected)
        value = float(metric(*values)[0])
        if Fraction(expected).denominator & (Fraction(expected).denominator - 1) == 0 and src_length % len(g) == 0:
            assert value == Fraction(expected)  # every intermediate result is a binary fraction: not a bit may differ
        assert value == pytest.approx(float(Fraction(expected)), rel=5e-16, abs=0)


def test_golden_table_as_one_batch() -> None:
    """Sentences of different lengths with garbage beyond each |y|, in every type of delays."""
    size = max(len(g) for g, *_ in GOLDEN) + 2
    src_lengths = torch.tensor([row[1] for row in GOLDEN])
    tgt_lengths = torch.tensor([len(row[0]) for row in GOLDEN])
    for garbage in (0, 99999):
        g = torch.tensor([row[0] + [garbage] * (size - len(row[0])) for row in GOLDEN])
        for dtype, tolerance in ((torch.float64, 1e-15), (torch.float32, 1e-6), (torch.int64, 1e-6)):
            for (metric, _), column in zip(PAIRS, (4, 2, 3)):
                values = metric(g.to(dtype), src_lengths, tgt_lengths)
                truth = torch.tensor([float(Fraction(str(row[column]))) for row in GOLDEN], dtype=torch.float64)
                assert values.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
                assert (values - truth).abs().max() <= tolerance * 10


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [7, 12, 50])
def test_wait_k_on_equal_lengths_lags_by_k(k: int, size: int) -> None:
    lengths = torch.tensor([size])
    g = wait_k_delays(k, lengths, size).double()
    assert float(average_lagging(g, lengths, lengths)) == k
    assert float(differentiable_average_lagging(g, lengths, lengths)) == k


@given(st.data())
def test_metrics_are_the_recurrences(data: st.DataObject) -> None:
    """Any delays: fractional, not monotone, with the source read early, late or never; several sentences per batch."""
    sentences = []
    for _ in range(data.draw(st.integers(1, 4))):
        src_length = data.draw(st.integers(1, 12))
        delay = st.one_of(st.integers(1, src_length).map(float), st.floats(1, src_length, width=32))
        sentences.append((data.draw(st.lists(delay, min_size=1, max_size=12)), src_length))
    size = max(len(g) for g, _ in sentences)
    padded = torch.tensor([g + [77.0] * (size - len(g)) for g, _ in sentences], dtype=torch.float64)
    src_lengths = torch.tensor([n for _, n in sentences])
    tgt_lengths = torch.tensor([len(g) for g, _ in sentences])
    for metric, oracle in PAIRS:
        g_tensor = padded.clone().requires_grad_()
        values = metric(g_tensor, src_lengths, tgt_lengths)
        values.sum().backward()
        assert g_tensor.grad is not None and torch.isfinite(g_tensor.grad).all()
        for b, (g, src_length) in enumerate(sentences):
            exact = oracle([Fraction(g_i) for g_i in g], Fraction(src_length))
            assert values[b].item() == pytest.approx(float(exact), rel=1e-12, abs=1e-12)
            assert not g_tensor.grad[b, len(g) :].any()


def test_gradients_of_dal_are_those_of_the_recurrence() -> None:
    """Gradients away from ties, where the maximum is not differentiable."""
    src_lengths, tgt_lengths = torch.tensor([9, 7, 20]), torch.tensor([8, 11, 5])
    g = torch.cumsum(torch.rand(3, 11, dtype=torch.float64) * 2, dim=1).requires_grad_()
    differentiable_average_lagging(g, src_lengths, tgt_lengths).sum().backward()
    assert g.grad is not None
    for b in range(3):
        scalars = [g_i.detach().clone().requires_grad_() for g_i in g[b, : int(tgt_lengths[b])]]
        oracles.differentiable_average_lagging(scalars, int(src_lengths[b])).backward()
        truth = torch.tensor([0.0 if s.grad is None else float(s.grad) for s in scalars], dtype=torch.float64)
        assert torch.allclose(g.grad[b, : len(scalars)], truth, atol=1e-12)


def test_gradcheck() -> None:
    src_lengths, tgt_lengths = torch.tensor([9, 7, 20]), torch.tensor([8, 11, 5])
    g = torch.cumsum(torch.rand(3, 11, dtype=torch.float64) * 2, dim=1).requires_grad_()
    for metric in (average_proportion, average_lagging, differentiable_average_lagging):
        assert gradcheck(lambda g, metric=metric: metric(g, src_lengths, tgt_lengths), (g,))
    assert gradcheck(expected_delays, (torch.rand(2, 3, 5, dtype=torch.float64, requires_grad=True),))


def test_dal_from_alpha_reaches_every_step() -> None:
    """Gradients of the latency loss as in training: alpha -> g -> DAL."""
    alpha = torch.softmax(torch.randn(4, 6, 10), -1).requires_grad_()
    g, truth = expected_delays(alpha), oracles.delays(alpha.detach())
    assert (g - truth).abs().max() < 1e-5
    lengths = torch.tensor([10, 10, 10, 10])
    differentiable_average_lagging(g, lengths, torch.tensor([6, 6, 3, 1])).sum().backward()
    assert alpha.grad is not None
    assert alpha.grad[:, 0].any(-1).all() and not alpha.grad[2, 3:].any() and not alpha.grad[3, 1:].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    alpha = torch.softmax(torch.randn(3, 5, 300) * 3, -1)
    truth = oracles.delays(alpha.to(dtype))
    g = expected_delays(alpha.to(dtype))
    assert g.dtype == torch.float32 and (g - truth).abs().max() < 1e-3
    half, lengths = torch.tensor([[3, 4, 4, 4]], dtype=dtype), torch.tensor([4])
    for metric, oracle in PAIRS:
        value = metric(half, lengths, lengths)
        assert value.dtype == torch.float32 and float(value) == oracle([3, 4, 4, 4], 4)


@pytest.mark.parametrize("dtype", [FLOAT16, torch.bfloat16])
def test_delays_are_float32_under_autocast(dtype: torch.dtype) -> None:
    """A matrix product in half precision would be off by half a token."""
    alpha = torch.softmax(torch.randn(3, 5, 300) * 3, -1)
    with torch.autocast("cpu", dtype=dtype):
        g = expected_delays(alpha)
    assert g.dtype == torch.float32 and (g - oracles.delays(alpha)).abs().max() < 1e-3


def test_an_empty_hypothesis_costs_nothing() -> None:
    g, src_lengths, tgt_lengths = torch.ones(2, 3), torch.tensor([4, 4]), torch.tensor([0, 3])
    for metric, _ in PAIRS:
        values = metric(g, src_lengths, tgt_lengths)
        assert values[0] == 0 and torch.isfinite(values).all()


# --- wait-k -------------------------------------------------------------------------------------------------------


@given(
    k=st.integers(1, 12),
    src_lengths=st.lists(st.integers(1, 30), min_size=1, max_size=3),
    tgt_size=st.integers(0, 60),
    rate=st.sampled_from(["1", "1.1", "0.9", "0.7", "0.3", "2", "2.5", "1.3", "0.05", "3.7"]),
)
def test_wait_k_schedule(k: int, src_lengths: List[int], tgt_size: int, rate: str) -> None:
    g = wait_k_delays(k, torch.tensor(src_lengths), tgt_size, float(rate))
    assert g.dtype == torch.int64
    assert g.tolist() == [oracles.wait_k_delays(k, n, tgt_size, rate) for n in src_lengths]


def test_wait_k_examples() -> None:
    lengths = torch.tensor([10, 4])
    assert wait_k_delays(3, lengths, 6).tolist() == [[3, 4, 5, 6, 7, 8], [3, 4, 4, 4, 4, 4]]
    assert wait_k_delays(2, torch.tensor([10]), 11, rate=1.1).tolist() == [[2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]]
    assert wait_k_delays(300, lengths, 2).tolist() == [[10, 10], [4, 4]]
    # 33 / 1.1 = 29.999999999999996 and 11 // 1.1 = 9 in floating point
    assert wait_k_delays(1, torch.tensor([1000]), 200, rate=1.1)[0, [11, 33]].tolist() == [11, 31]


def test_wait_k_with_a_rate_of_many_digits() -> None:
    g = wait_k_delays(1, torch.tensor([10**6]), 3000, rate=1 / 3)
    assert g[0].tolist() == [1 + 3 * i for i in range(3000)]


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_at_least_one(k: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        wait_k_delays(k, torch.tensor([3]), 3)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_rate_is_positive(rate: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        wait_k_delays(1, torch.tensor([3]), 3, rate)
