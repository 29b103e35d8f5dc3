"""Output layer + label-smoothed loss against fairseq's own function on whole logits."""

from typing import List, Optional, Tuple

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional as F  # noqa: N812

from fairseq_milk.functional.output_loss import OutputLoss, label_smoothed_nll
from tests.support.torch_features import FLOAT16

PAD = 1
Inputs = Tuple[Tensor, Tensor, Optional[Tensor], Tensor]


def inputs(n: int = 23, d: int = 8, v: int = 31, bias: bool = True, dtype: torch.dtype = torch.float64) -> Inputs:
    """Features, weight, bias, target; some of the targets are padding."""
    target = torch.randint(2, v, (n,))
    target[::5] = PAD
    tensors = (torch.randn(n, d), torch.randn(v, d), torch.randn(v))
    features, weight, b = (tensor.to(dtype).requires_grad_() for tensor in tensors)
    return features, weight, b if bias else None, target


def by_fairseq(features: Tensor, weight: Tensor, bias: Optional[Tensor], target: Tensor, eps: float) -> OutputLoss:
    """What fairseq's criterion does with the output of a decoder."""
    logits = F.linear(features, weight, bias)
    lprobs = F.log_softmax(logits, dim=-1, dtype=torch.float64 if logits.dtype == torch.float64 else torch.float32)
    loss, nll = label_smoothed_nll_loss(lprobs, target, eps, ignore_index=PAD)
    correct = (lprobs.argmax(1).eq(target) & target.ne(PAD)).sum()
    return OutputLoss(loss, nll.detach(), correct)


def gradients(loss: Tensor, inputs: Inputs) -> List[Tensor]:
    return list(torch.autograd.grad(loss, [x for x in inputs[:3] if x is not None]))


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("chunk", [1, 7, 23, 256])
def test_values_and_gradients_are_those_of_fairseq(eps: float, bias: bool, chunk: int) -> None:
    x = inputs(bias=bias)
    ours, theirs = label_smoothed_nll(*x, eps, PAD, chunk), by_fairseq(*x, eps)
    torch.testing.assert_close(ours.loss, theirs.loss)
    torch.testing.assert_close(ours.nll, theirs.nll)
    for mine, other in zip(gradients(3.0 * ours.loss, x), gradients(3.0 * theirs.loss, x)):
        torch.testing.assert_close(mine, other)


def test_float32_gradients_are_exact_to_1e_5_at_the_size_of_a_model() -> None:
    """Compared with fairseq in float64; the bias gradient of fairseq in float32 itself differs by up to 1e-5."""
    n, d, v = 600, 64, 8000
    target = torch.randint(2, v, (n,))
    target[::9] = PAD
    tensors = (torch.randn(n, d), torch.randn(v, d).mul(0.3), torch.randn(v).mul(0.3))
    x: Inputs = (*(t.clone().requires_grad_() for t in tensors), target)  # type: ignore[assignment]
    exact: Inputs = (*(t.double().requires_grad_() for t in tensors), target)  # type: ignore[assignment]
    ours, theirs = label_smoothed_nll(*x, 0.1, PAD), by_fairseq(*exact, 0.1)
    torch.testing.assert_close(ours.loss.double(), theirs.loss, rtol=1e-6, atol=0.0)
    for mine, other in zip(gradients(ours.loss, x), gradients(theirs.loss, exact)):
        assert float((mine - other).norm() / other.norm()) < 2e-6
        assert float((mine - other).abs().max() / other.abs().max()) < 1e-5


def test_gradcheck() -> None:
    features, weight, bias, target = inputs(n=5, d=3, v=6)

    def loss(f: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return label_smoothed_nll(f, w, b, target, 0.2, PAD, chunk=2).loss

    assert bias is not None and gradcheck(loss, (features, weight, bias))


def test_counts_the_correct_rows() -> None:
    weight = torch.eye(4)
    features = torch.tensor([[0.0, 0, 5, 0], [0, 0, 0, 5], [0, 5, 0, 0], [0, 0, 5, 0]])
    result = label_smoothed_nll(features, weight, None, torch.tensor([2, 2, PAD, 2]), 0.1, PAD)
    assert result.correct.dtype == torch.long and int(result.correct) == 2


def test_correct_is_the_argmax_of_fairseq() -> None:
    x = inputs(n=200, v=6)
    result = label_smoothed_nll(*x, 0.1, PAD, 16)
    assert 0 < int(result.correct) == int(by_fairseq(*x, 0.1).correct)


@pytest.mark.parametrize("rows", [0, 5])
def test_nothing_to_predict(rows: int) -> None:
    features, weight, bias, _ = x = inputs(n=rows)
    x = (features, weight, bias, torch.full((rows,), PAD))
    result = label_smoothed_nll(*x, 0.1, PAD)
    assert (float(result.loss), float(result.nll), int(result.correct)) == (0.0, 0.0, 0)
    assert all(float(gradient.abs().sum()) == 0.0 for gradient in gradients(result.loss, x))


def test_ignored_rows_change_nothing_and_get_no_gradient() -> None:
    features, weight, bias, target = inputs()
    keep = target.ne(PAD)
    whole = label_smoothed_nll(features, weight, bias, target, 0.1, PAD, 4)
    part = label_smoothed_nll(features[keep], weight, bias, target[keep], 0.1, PAD, 4)
    torch.testing.assert_close(whole.loss, part.loss)
    (gradient,) = torch.autograd.grad(whole.loss, features)
    assert gradient[~keep].eq(0).all() and gradient[keep].ne(0).any(1).all()


def test_an_ignore_index_outside_of_the_vocabulary() -> None:
    features, weight, bias, target = inputs()
    outside = target.masked_fill(target.eq(PAD), -100)
    ours = label_smoothed_nll(features, weight, bias, outside, 0.1, -100)
    torch.testing.assert_close(ours.loss, label_smoothed_nll(features, weight, bias, target, 0.1, PAD).loss)


def test_only_the_loss_carries_a_gradient() -> None:
    result = label_smoothed_nll(*inputs(), 0.1, PAD)
    assert result.loss.requires_grad and not result.nll.requires_grad and not result.correct.requires_grad


def test_no_gradient_is_computed_when_none_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    x = inputs()
    with_grad = label_smoothed_nll(*x, 0.1, PAD)
    monkeypatch.setattr("fairseq_milk.functional.output_loss._GradientSums", None)
    with torch.no_grad():
        without = label_smoothed_nll(*x, 0.1, PAD)
    assert not without.loss.requires_grad
    for a, b in zip(with_grad, without):
        torch.testing.assert_close(a.detach(), b)


def test_a_second_backward_gives_the_same_gradient() -> None:
    x = inputs()
    loss = label_smoothed_nll(*x, 0.1, PAD).loss
    first = [g.clone() for g in torch.autograd.grad(2.0 * loss, x[:3], retain_graph=True)]  # type: ignore[arg-type]
    for a, b in zip(first, torch.autograd.grad(2.0 * loss, x[:3])):  # type: ignore[arg-type]
        torch.testing.assert_close(a, b)


def test_a_frozen_output_layer_passes_the_gradient_on() -> None:
    features, weight, bias, target = x = inputs()
    truth = gradients(label_smoothed_nll(*x, 0.1, PAD).loss, x)[0]
    assert bias is not None
    label_smoothed_nll(features, weight.detach(), bias.detach(), target, 0.1, PAD).loss.backward()
    assert features.grad is not None
    torch.testing.assert_close(features.grad, truth)


def test_extreme_logits_stay_finite() -> None:
    features, weight, bias, target = inputs(dtype=torch.float32)
    x: Inputs = (features.detach().mul(1e4).requires_grad_(), weight, bias, target)
    ours, theirs = label_smoothed_nll(*x, 0.1, PAD), by_fairseq(*x, 0.1)
    torch.testing.assert_close(ours.loss, theirs.loss)
    for mine, other in zip(gradients(ours.loss, x), gradients(theirs.loss, x)):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-3 * float(other.abs().max()))


@pytest.mark.parametrize("dtype", [FLOAT16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    """As accurate as the rounding of the inputs; small probabilities do not underflow before the loss is scaled."""
    x = inputs(n=300, d=16, v=500, dtype=dtype)
    exact: Inputs = tuple(t.detach().double().requires_grad_() for t in x[:3] if t is not None) + (x[3],)  # type: ignore
    ours, theirs = label_smoothed_nll(*x, 0.1, PAD), by_fairseq(*exact, 0.1)
    assert ours.loss.dtype == torch.float32
    torch.testing.assert_close(ours.loss.double(), theirs.loss, rtol=1e-2, atol=0.0)
    for mine, other in zip(gradients(ours.loss, x), gradients(theirs.loss, exact)):
        assert mine.dtype == dtype and mine.isfinite().all()
        assert float((mine.double() - other).norm() / other.norm()) < 2e-2
