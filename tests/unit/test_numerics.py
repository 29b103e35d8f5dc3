"""Numbers of every size and type: finite, mass 1, monotone, a finite gradient, in the functions and all mechanisms.

HYPOTHESIS_PROFILE=long pytest tests/unit/test_numerics.py        10,000 examples each
"""

from typing import Any, NamedTuple, Sequence, Tuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_milk.attention import ATTENTIONS, AttentionOptions, build_attention
from fairseq_milk.functional import (
    additive_energy,
    average_lagging,
    average_proportion,
    chunkwise_lookback,
    differentiable_average_lagging,
    expected_alignment,
    expected_alignment_parallel,
    expected_delays,
    padding_mask,
    prefix_softmax,
)
from fairseq_milk.functional.output_loss import label_smoothed_nll
from tests.support.torch_features import multiplies_float16

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
MULTIPLIED = DTYPES if multiplies_float16() else DTYPES[:-1]
# from 0 over usual values and those that saturate a sigmoid to nearly the largest of the type
SIZES = (0.0, 1e-6, 1.0, 30.0, 120.0, 1e4, 6e4, 1e30, 3e38, 1e300)


class Case(NamedTuple):
    """Sentences of different lengths in one batch, and a seed for everything else."""

    lengths: Tensor  # (B,)
    I: int
    size: float
    dtype: torch.dtype
    seed: int

    @property
    def J(self) -> int:  # noqa: N802
        return int(self.lengths.max())

    def energies(self, *shape: int, size: float = -1.0) -> Tensor:
        """Normal energies, or runs of equal values, as of a head that is certain; within the range of the type."""
        torch.manual_seed(self.seed)
        e = torch.randn(*shape) if self.seed % 2 else torch.randint(-1, 2, shape).float()
        largest = torch.finfo(self.dtype).max
        return (e.double() * (self.size if size < 0 else size)).clamp(-largest, largest).to(self.dtype)

    def tolerance(self) -> float:
        """alpha and beta are float32 or better whatever the model's type."""
        return 1e-4 if self.dtype != torch.float64 else 1e-9


@st.composite
def cases(draw: Any, dtypes: Sequence[torch.dtype] = DTYPES) -> Case:
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    return Case(
        torch.tensor(lengths),
        draw(st.integers(1, 4)),
        draw(st.sampled_from(SIZES)),
        draw(st.sampled_from(dtypes)),
        draw(st.integers(0, 2**32)),
    )


def first(case: Case) -> Tensor:
    """alpha_0: the head stands on the first token."""
    return torch.eye(case.J)[:1].expand(len(case.lengths), -1)


def outside(case: Case) -> Tensor:
    return padding_mask(case.lengths, case.J)


def check_rows(x: Tensor, case: Case, mass: float = 1.0) -> None:
    assert torch.isfinite(x).all() and (x >= 0).all() and (x <= 1 + case.tolerance()).all()
    assert not x.masked_select(outside(case).expand_as(x)).any(), "padding has weight"
    torch.testing.assert_close(x.sum(-1), torch.full_like(x[..., 0], mass), rtol=0, atol=case.tolerance())


def check_gradient(loss: Tensor, *inputs: Tensor) -> None:
    for gradient in torch.autograd.grad(loss, inputs):
        assert torch.isfinite(gradient).all()


# ---- functional -------------------------------------------------------------------------------------------------


def schedule(case: Case, alignment: Any = expected_alignment) -> Tuple[Tensor, Tensor]:
    """alpha of all target steps, (I, B, J), and its energies."""
    e = case.energies(case.I, len(case.lengths), case.J).requires_grad_()
    alpha, rows = first(case), []
    for step in e:
        alpha = alignment(step, alpha, case.lengths)
        rows.append(alpha)
    return torch.stack(rows), e


@given(cases())
def test_alignment(case: Case) -> None:
    alpha, e = schedule(case)
    check_rows(alpha, case)
    later = alpha.detach().flip(-1).cumsum(-1).flip(-1)  # P(t_i >= j): a head never goes back
    assert (later[1:] >= later[:-1] - case.tolerance()).all()
    check_gradient((alpha * torch.randn_like(alpha)).sum(), e)


@given(cases())
def test_the_published_alignment(case: Case) -> None:
    """The published form is inexact, but gives at most a distribution and a finite gradient."""
    alpha, e = schedule(case, expected_alignment_parallel)
    assert torch.isfinite(alpha).all() and (alpha >= 0).all() and not alpha[:, outside(case)].any()
    check_gradient(alpha.square().sum(), e)


@given(cases(), st.integers(1, 50))
def test_lookback(case: Case, w: int) -> None:
    u = case.energies(len(case.lengths), case.J).requires_grad_()
    for chunk_size in (case.J, w):  # the first is MILk's
        alpha, e = schedule(case)
        beta = chunkwise_lookback(alpha[-1], u, chunk_size, case.lengths)
        check_rows(beta, case)
        check_gradient((beta * torch.randn_like(beta)).sum(), e, u)


@given(cases(), st.integers(1, 2**40))
def test_prefix_softmax(case: Case, window: int) -> None:
    u = case.energies(len(case.lengths), case.J).requires_grad_()
    for beta in (prefix_softmax(u, case.lengths), prefix_softmax(u, case.lengths, window)):
        check_rows(beta, case)
        check_gradient(beta.square().sum(), u)


@given(cases())
def test_delays_and_what_they_cost(case: Case) -> None:
    alpha, e = schedule(case)
    g, I = expected_delays(alpha).t(), torch.randint(1, case.I + 1, (len(case.lengths),))
    assert torch.isfinite(g).all() and (g >= 1 - 1e-3).all() and (g <= case.lengths.unsqueeze(1) + 1e-2).all()
    assert (g[:, 1:] >= g[:, :-1] - 1e-2).all()
    ap, al, dal = (
        metric(g, case.lengths, I) for metric in (average_proportion, average_lagging, differentiable_average_lagging)
    )
    for value in (ap, al, dal):
        assert torch.isfinite(value).all()
    assert (ap > 0).all() and (ap <= 1 + 1e-3).all() and (dal >= al - 1e-2).all() and (dal <= case.lengths + 1e-2).all()
    check_gradient(dal.sum() + ap.sum(), e)


@given(cases(MULTIPLIED))
def test_energies(case: Case) -> None:
    keys = case.energies(len(case.lengths), case.J, 6).requires_grad_()
    query = case.energies(len(case.lengths), 6).requires_grad_()
    v = case.energies(6, size=1.0).requires_grad_()
    u = additive_energy(keys, query, v)
    assert torch.isfinite(u).all() and (u.abs() <= v.abs().sum() * 1.02 + 1e-3).all()
    check_gradient(u.float().sum(), keys, query, v)


@given(cases(MULTIPLIED), st.floats(0, 1, exclude_max=True))
def test_output_loss(case: Case, eps: float) -> None:
    """Logits up to some thousands; in float16, features up to 4."""
    size = min(case.size, 1e3) ** 0.5
    features = case.energies(int(case.lengths.sum()), 5, size=min(size, 1.0) if case.dtype == torch.float16 else size)
    features = features.clamp(-4, 4).requires_grad_()
    weight = case.energies(9, 5, size=size).requires_grad_()
    target = torch.arange(len(features)) % 9
    out = label_smoothed_nll(features, weight, None, target, eps, ignore_index=1)
    assert torch.isfinite(out.loss) and torch.isfinite(out.nll) and out.nll >= -1e-2
    check_gradient(out.loss, features, weight)


# ---- the mechanisms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ATTENTIONS))
@given(case=cases(MULTIPLIED), w=st.integers(1, 50), k=st.integers(1, 50))
def test_mechanisms(name: str, case: Case, w: int, k: int) -> None:
    """Expected and hard, with weights of any size and the noise of training."""
    torch.manual_seed(case.seed)
    options = AttentionOptions(query_dim=4, memory_dim=4, energy_dim=5, chunk_size=w, k=k, energy_bias=0.0)
    attention = build_attention(name, options).to(case.dtype).train()
    with torch.no_grad():
        for p in attention.parameters():
            p.mul_(min(case.size, 50.0))
        for name_, p in attention.named_parameters():
            p.add_(0.1 if name_.endswith(".v") else 0.0)
    h = case.energies(len(case.lengths), case.J, 4, size=2.0).requires_grad_()
    s = case.energies(case.I, len(case.lengths), 4, size=2.0).requires_grad_()
    for hard in (False, True):
        memory, total = attention.remember(h, case.lengths), torch.zeros(())
        state, previous = attention.begin(memory), torch.zeros(len(case.lengths), case.J)
        for step in s:
            out, state = attention.expected(step, memory, state, hard)
            check_rows(out.alpha, case)
            check_rows(out.beta, case)
            assert torch.isfinite(out.c).all()
            later = out.alpha.detach().flip(-1).cumsum(-1).flip(-1)
            assert (later >= previous - case.tolerance()).all()
            previous, total = later, total + out.c.float().square().mean() + expected_delays(out.alpha).mean()
        if total.requires_grad:
            inputs = [h, s, *attention.parameters()]
            for gradient in torch.autograd.grad(total, inputs, allow_unused=True):
                assert gradient is None or torch.isfinite(gradient).all()
