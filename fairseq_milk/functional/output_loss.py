"""The output layer and the label-smoothed likelihood in one function, which never holds the logits of a whole batch.

For row n with feature f_n, logits l_nv = f_n W_v + b_v, target y_n, and Z_n = log sum_v exp(l_nv), fairseq's loss is

    nll_n  = Z_n - l_ny                                     smooth_n = sum_v (Z_n - l_nv)
    loss_n = (1 - eps - eps') nll_n + eps' smooth_n         eps' = eps / (V - 1)
           = Z_n - q l_ny - eps' sum_v l_nv                 q = 1 - eps - eps'      (the weights of Z_n add up to 1)

summed over the rows whose target is not `ignore_index`.  With P = softmax(l) and K_nv = P_nv - q [v = y_n],

    df_n = sum_v K_nv W_v - eps' sum_v W_v
    dW_v = sum_n K_nv f_n - eps' sum_n f_n
    db_v = sum_n K_nv     - eps' N

and sum_v l_nv = f_n sum_v W_v + sum_v b_v: the eps' terms need no pass over the logits.  The contribution of a chunk of
rows to the gradient is known as soon as its logits are, so the forward adds it up and reuses the (chunk, V) buffers for
the next chunk.  The backward multiplies by dL/dloss.
"""

from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .masking import at_least_float32
from .product import without_autocast

# Gradients are summed before the loss is scaled: in float16, probabilities below 6e-8 would underflow in the products.
# A power of two, small enough that a column of a chunk cannot overflow (256 rows with p = 1, features up to 4).
FLOAT16_SCALE = 64.0


class OutputLoss(NamedTuple):
    """Sums over the rows that are not ignored; `loss` alone carries a gradient."""

    loss: Tensor
    nll: Tensor
    correct: Tensor  # rows in which no other word scored higher than the target


class _Options(NamedTuple):
    """Of `label_smoothed_nll`."""

    eps: float
    ignore_index: int
    chunk: int


Gradients = Tuple[Tensor, Tensor, Tensor]  # for features, weight and bias, in float32 or better


class _GradientSums:
    """The gradients, added up over the chunks; they begin with the eps' terms.

    factors: the features in the type of the weight.  weight_sum: (D,), in float32 or better.  keep: (N, 1), False for
    ignored rows.
    """

    def __init__(
        self, features: Tensor, factors: Tensor, weight: Tensor, weight_sum: Tensor, keep: Tensor, eps_each: float
    ) -> None:
        vocabulary, wide = weight.size(0), weight_sum.dtype
        self.weight, self.keep, self.kept = weight, keep, factors * keep
        self.scale = FLOAT16_SCALE if weight.dtype == torch.float16 else 1.0
        self.dfeatures = weight_sum.mul(-eps_each).repeat(features.size(0), 1)
        self.dweight = (features * keep).sum(0, dtype=wide).mul_(-eps_each).repeat(vocabulary, 1)
        self.dbias = keep.sum().to(wide).mul_(-eps_each).repeat(vocabulary)

    def add(self, rows: slice, k: Tensor) -> None:
        """Add the terms of K for a chunk of rows.  k: (n, V), is overwritten."""
        factor = (k if self.scale == 1.0 else k.mul_(self.scale)).to(self.weight.dtype)
        self._accumulate(self.dfeatures[rows], factor, self.weight)
        self._accumulate(self.dweight, factor.t(), self.kept[rows])
        self.dbias.addmv_(k.t(), self.keep[rows].squeeze(1).to(k.dtype), alpha=1.0 / self.scale)

    def _accumulate(self, total: Tensor, a: Tensor, b: Tensor) -> None:
        """total += a b / scale, in place.  total is float32 where a and b are half precision."""
        if total.dtype == a.dtype:
            total.addmm_(a, b, alpha=1.0 / self.scale)
        else:
            total.add_(torch.mm(a, b), alpha=1.0 / self.scale)

    def total(self) -> Gradients:
        return self.dfeatures.mul_(self.keep), self.dweight, self.dbias


def _run(
    features: Tensor, weight: Tensor, bias: Optional[Tensor], target: Tensor, options: _Options, training: bool
) -> Tuple[OutputLoss, Optional[Gradients]]:
    """The loss and, in training, its gradients."""
    vocabulary, chunk = weight.size(0), options.chunk
    eps_each = options.eps / (vocabulary - 1)
    q = 1.0 - options.eps - eps_each
    keep = target.ne(options.ignore_index).unsqueeze(1)
    target = target.unsqueeze(1).masked_fill(~keep, 0)  # any valid word for an ignored row
    wide = at_least_float32(features).dtype
    weight_sum = weight.sum(0, dtype=wide)  # (D,)
    bias_sum = weight_sum.new_zeros(()) if bias is None else bias.sum(dtype=wide)
    logit_sum = torch.mv(features.to(wide), weight_sum).unsqueeze(1) + bias_sum  # (N, 1)
    factors = features.to(weight.dtype)
    sums = _GradientSums(features, factors, weight, weight_sum, keep, eps_each) if training else None

    loss, nll, correct = weight_sum.new_zeros(()), weight_sum.new_zeros(()), keep.new_zeros((), dtype=torch.long)
    logits_buffer = factors.new_empty(min(chunk, features.size(0)), vocabulary)
    p_buffer = torch.empty_like(logits_buffer, dtype=wide)
    for start in range(0, features.size(0), chunk):
        rows = slice(start, start + chunk)
        n, y = keep[rows].size(0), target[rows]
        logits = torch.mm(factors[rows], weight.t(), out=logits_buffer[:n]).to(wide)
        if bias is not None:
            logits += bias
        p = torch.softmax(logits, dim=-1, out=p_buffer[:n])
        top, l_y = logits.amax(-1, keepdim=True), logits.gather(1, y)
        z = top - p.amax(-1, keepdim=True).log()  # max_v P = exp(max_v l - Z), never below 1 / V
        loss += (z - q * l_y - eps_each * logit_sum[rows]).mul_(keep[rows]).sum()
        nll += (z - l_y).mul_(keep[rows]).sum()
        correct += (l_y.ge(top) & keep[rows]).sum()
        if sums is not None:
            sums.add(rows, p.scatter_add_(1, y, torch.full_like(z, -q)))
    return OutputLoss(loss, nll, correct), None if sums is None else sums.total()


class _LabelSmoothedNLL(torch.autograd.Function):
    """The backward scales the gradients in place; a second backward (retain_graph) computes them again."""

    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Optional[Tensor], target: Tensor, options: _Options
    ) -> Tuple[Tensor, Tensor, Tensor]:
        result, ctx.gradients = _run(features, weight, bias, target, options, True)
        ctx.save_for_backward(features, weight, bias, target)
        ctx.options = options
        ctx.mark_non_differentiable(result.nll, result.correct)
        return result.loss, result.nll, result.correct

    @staticmethod
    @without_autocast
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor, *_: Any) -> Tuple[Optional[Tensor], ...]:
        features, weight, bias, target = inputs = ctx.saved_tensors
        gradients: Optional[Gradients] = ctx.gradients
        ctx.gradients = None
        if gradients is None:
            gradients = _run(features, weight, bias, target, ctx.options, True)[1]
        assert gradients is not None
        scaled: List[Optional[Tensor]] = [None] * 5
        for index, gradient in enumerate(gradients):
            if ctx.needs_input_grad[index]:
                scaled[index] = gradient.mul_(dloss).to(inputs[index].dtype)
        return tuple(scaled)


def label_smoothed_nll(
    features: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    target: Tensor,
    eps: float,
    ignore_index: int,
    chunk: int = 256,
) -> OutputLoss:
    """Output projection and label-smoothed NLL of N rows, summed, as fairseq's `label_smoothed_nll_loss`.

    features: (N, D); weight: (V, D); bias: (V,) or None; target: (N,), rows with `ignore_index` are not counted.
              Products are computed in the type of `weight`, everything else in float32 or better.
    eps:      probability mass spread over the words other than the target.
    chunk:    rows at a time; needs memory for two (chunk, V) buffers and the gradient of weight.
    Returns loss, nll (float32 or better) and the number of correct rows (integer), each of shape ().
    O(N D V) work, one product forward and two for the gradient, which is computed only if grad is enabled.
    """
    options = _Options(eps, ignore_index, chunk)
    inputs = (features, weight) if bias is None else (features, weight, bias)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        sums = _LabelSmoothedNLL.apply(features, weight, bias, target, options)  # type: ignore
        return OutputLoss(*sums)
    return _run(features, weight, bias, target, options, False)[0]
