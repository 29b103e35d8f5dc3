"""beta: how far back the soft head looks from where the monotonic head stopped (paper, section 3.2).

    infinite    beta_ij = sum_{k>=j} alpha_ik exp(u_ij) / sum_{l<=k} exp(u_il)              MILk, equation (beta)
    chunkwise   the same with l > k - w and k < j + w                                        MoChA, chunk size w

Given a stop at k, the soft head is a softmax of u over the tokens that it sees; beta is the average over k.
Hence sum_j beta_ij = sum_j alpha_ij, w = 1 is monotonic attention and w >= |x| is MILk.
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .masking import at_least_float32, padding_mask, spread

# exp(-600) is a normal float64 and 1 / exp(-600) does not overflow: u may span 600
_FLOOR = -600.0


def _reverse_cumsum(x: Tensor) -> Tensor:
    """y_j = sum_{k>=j} x_k.  (B, J) -> (B, J)."""
    return x.flip(-1).cumsum(-1).flip(-1)


class _InfiniteLookback(torch.autograd.Function):
    """beta = ex t with ex = exp(u - max u), S = cumsum(ex), t = revcumsum(alpha / S), all in float64.

    With G = dL/dbeta and c_k = cumsum(ex G)_k / S_k  (the expected G of a soft head that sees 1..k):

        dL/dalpha = c          dL/du = ex (t G - revcumsum(alpha c / S))

    float64, because a prefix of u may lie hundreds below the row's maximum, where exp underflows in float32.
    """

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, u: Tensor) -> Tensor:
        u64 = u.double()
        ex = (u64 - u64.amax(dim=-1, keepdim=True)).clamp_(min=_FLOOR).exp_()
        total = ex.cumsum(-1)
        ratio = alpha / total  # float64, as total
        t = _reverse_cumsum(ratio)
        ctx.save_for_backward(ex, total, ratio, t)
        ctx.dtypes = alpha.dtype, u.dtype
        return (ex * t).to(alpha.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor]:
        ex, total, ratio, t = ctx.saved_tensors
        c = (ex * grad).cumsum(-1).div_(total)
        grad_u = (t * grad).sub_(_reverse_cumsum(ratio * c)).mul_(ex)
        return c.to(ctx.dtypes[0]), grad_u.to(ctx.dtypes[1])


def _mask(alpha: Tensor, u: Tensor, src_lengths: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """alpha and u in the type of alpha, float32 or better, masked at padding (by a finite u, as alpha is 0 there)."""
    alpha = at_least_float32(alpha)
    u = u.to(alpha.dtype)
    if alpha.shape != u.shape:  # one schedule for several heads
        alpha = alpha.expand_as(u)
    if src_lengths is None:
        return alpha, u
    padding = spread(padding_mask(src_lengths, u.size(-1)), u)
    return alpha.masked_fill(padding, 0.0), u.masked_fill(padding, torch.finfo(u.dtype).min)


def infinite_lookback(alpha: Tensor, u: Tensor, src_lengths: Optional[Tensor] = None) -> Tensor:
    """beta_i of MILk: a softmax of u over everything read, averaged over the stop position.

        beta_ij = sum_{k=j}^{|x|} alpha_ik exp(u_ij) / sum_{l=1}^{k} exp(u_il)

    alpha, u: (B, J), or (B, ..., J); alpha in [0, 1], u finite.  src_lengths: (B,) or None.
    Exact if u spans at most 600 in a row; lower values count as 600 below the row's maximum.
    Returns beta: (B, J) in [0, 1], float32 or better, row sums those of alpha, 0 at padding.  O(J).
    """
    alpha, u = _mask(alpha, u, src_lengths)
    result: Tensor = _InfiniteLookback.apply(alpha, u)  # type: ignore[no-untyped-call]
    return result


def chunkwise_lookback(alpha: Tensor, u: Tensor, chunk_size: int, src_lengths: Optional[Tensor] = None) -> Tensor:
    """beta_i of MoChA: a softmax of u over the last `chunk_size` = w tokens, averaged over the stop position.

        beta_ij = sum_{k=j}^{j+w-1} alpha_ik exp(u_ij) / sum_{l=k-w+1}^{k} exp(u_il)

    Arguments and result as in `infinite_lookback`.  Each window has its own softmax (no difference of cumulative
    sums, which would cancel): O(J w) work and memory.
    """
    if chunk_size < 1:
        raise ValueError(f"the chunk size must be at least 1, got {chunk_size}")
    if chunk_size >= u.size(-1):
        return infinite_lookback(alpha, u, src_lengths)
    alpha, u = _mask(alpha, u, src_lengths)
    before = chunk_size - 1
    shape = u.shape
    alpha, u = alpha.reshape(-1, shape[-1]), u.reshape(-1, shape[-1])
    # (B, J, w): the window that ends at k; positions before the sentence have weight 0
    weights = F.pad(u, (before, 0), value=float("-inf")).unfold(-1, chunk_size, 1).softmax(-1)
    joint = (alpha.unsqueeze(-1) * weights).transpose(1, 2)  # (B, w, J)  P(stop at k, look at slot r)
    folded = F.fold(joint, (1, u.size(-1) + before), (1, chunk_size))  # slot r of window k is position k - before + r
    return folded[:, 0, 0, before:].view(shape)


def prefix_softmax(u: Tensor, lengths: Tensor, window: Optional[int] = None) -> Tensor:
    """beta_i when the stop is known: softmax of u over the first `lengths` tokens, or the last `window` of them.

        beta_ij = exp(u_ij) / sum_{l in W} exp(u_il),     W = {l : lengths - window < l <= lengths}

    u: (..., J), lengths: (...) in 1..J -> (..., J), float32 or better, 0 outside W.
    """
    hidden = padding_mask(lengths, u.size(-1))
    if window is not None:
        hidden = hidden | ~padding_mask(lengths - window, u.size(-1))
    return at_least_float32(u).masked_fill(hidden, float("-inf")).softmax(-1)
