"""alpha: where the monotonic head stops (paper, section 3.1, and section 3.4 for mass preservation).

The head of target step i scans the source from its last position t_{i-1} and stops at j with probability
p_ij = sigmoid(e_ij).  alpha_ij = P(t_i = j) obeys

    q_ij     = (1 - p_i,j-1) q_i,j-1 + alpha_i-1,j          probability that the head ever inspects j
    alpha_ij = p_ij q_ij

which is the paper's recurrence with alpha_i,j-1 / p_i,j-1 = q_i,j-1, so that no division is needed.
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812

from .masking import at_least_float32, last_position, padding_mask, spread


def linear_scan(a: Tensor, b: Tensor, reverse: bool = False) -> Tensor:
    """x_j = a_{j-1} x_{j-1} + b_j from x_0 = b_0 on; reverse, its transpose: x_j = a_j x_{j+1} + b_j from the end on.

    a, b: (..., J) -> (..., J); a_j leads from j to j+1, the last one is not used.  Not differentiable.

    Hillis-Steele: ceil(log2 J) rounds of whole-row operations.  After the round with stride d, (a_j, x_j) composes
    the 2d recurrence steps that end at j:   [x, a]_j <- a_j [x, a]_{j-d} + [x, 0]_j.
    No division; with a, b >= 0 every rounding error is relative.

    Rows are short, so the number of calls determines the time.  x and a share a buffer that is padded with zeros on one
    side: every shift is then a view, and a round is two calls that write to a second buffer.
    """
    size = b.size(-1)
    reach = 1 << (size - 1).bit_length() >> 1  # the stride of the last round
    start, direction = (0, 1) if reverse else (reach, -1)
    buffers = b.new_zeros(2, 2, *b.shape[:-1], size + reach)
    wide, next_wide = buffers.unbind()
    rows, next_rows = buffers.narrow(-1, start, size).unbind()
    (x, c), (next_x, next_c) = rows.unbind(), next_rows.unbind()  # c: the composed a
    x.copy_(b)
    if reverse:
        c.copy_(a)
    else:
        c.narrow(-1, 1, size - 1).copy_(a.narrow(-1, 0, size - 1))
    stride = 1
    while stride < size:
        torch.mul(c, wide.narrow(-1, start + direction * stride, size), out=next_rows)
        next_x.add_(x)
        wide, rows, x, c, next_wide, next_rows, next_x, next_c = next_wide, next_rows, next_x, next_c, wide, rows, x, c
        stride *= 2
    return x


class _ExpectedAlignment(torch.autograd.Function):
    """alpha = p q of I target steps, and its gradient, with one scan per step in each direction.

    With G = dL/dalpha_i and R_j = p_j G_j + (1 - p_j) R_{j+1}, the expected G of a head at position j:

        dL/dalpha_i-1,j = R_j          dL/de_j = p_j (1 - p_j) q_j (G_j - R_{j+1}) = alpha_j (1 - p_j) (G_j - R_{j+1})

    Infinite energies mask positions: +inf always stops, -inf never does; both have gradient 0, as p (1 - p) = 0.
    """

    @staticmethod
    def forward(ctx: Any, e: Tensor, alpha_prev: Tensor) -> Tensor:
        """e: (..., I, J), alpha_prev: (..., J) -> (..., I, J)."""
        # sigmoid(-e) and never 1 - p: exact to the last bit when p is close to 1
        p, one_minus_p = torch.sigmoid(e), torch.neg(e).sigmoid_()
        alpha = torch.empty_like(p)
        for p_i, one_minus_p_i, alpha_i in zip(p.unbind(-2), one_minus_p.unbind(-2), alpha.unbind(-2)):
            alpha_prev = torch.mul(p_i, linear_scan(one_minus_p_i, alpha_prev), out=alpha_i)
        ctx.save_for_backward(p, one_minus_p, alpha)
        return alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor]:
        p, one_minus_p, alpha = ctx.saved_tensors
        grad_e = alpha * one_minus_p
        reward: Optional[Tensor] = None
        steps = zip(*(x.unbind(-2)[::-1] for x in (p, one_minus_p, grad, grad_e)))
        for p_i, one_minus_p_i, grad_i, grad_e_i in steps:
            grad_i = grad_i if reward is None else grad_i + reward  # from the loss, and from the next step
            reward = linear_scan(one_minus_p_i, p_i * grad_i, reverse=True)
            grad_e_i.mul_(grad_i - F.pad(reward, (-1, 1)))
        assert reward is not None, "no target step"
        return grad_e, reward


def expected_alignment(
    e: Tensor, alpha_prev: Tensor, src_lengths: Optional[Tensor] = None, preserve_mass: bool = True
) -> Tensor:
    """alpha_i, the distribution of the stop position t_i, from the energies e_i and alpha_{i-1}.

        alpha_ij = p_ij sum_{k<=j} alpha_i-1,k prod_{l=k}^{j-1} (1 - p_il),      p_ij = sigmoid(e_ij)

    e:             (B, J), or (B, I, J) where the energies of several steps are known; of any size (+-inf: hard).
                   There may be a head axis after B, in alpha_prev too.
    alpha_prev:    (B, J) in [0, 1], before the (first) step.
    src_lengths:   (B,), None when every sentence fills its row (or its energies are infinite where it does not).
    preserve_mass: p_{i,|x|} = 1 (paper, section 3.4): the remaining probability stops at the sentence's own last
                   token, and the row sums to 1.  Otherwise the row loses what passes the end of the source.
    Returns alpha_i, shaped as e, in [0, 1], float32 or better; padding gets 0.
    Exact for every p (see `expected_alignment_parallel` for the published form, which is not).
    O(J log J) work in ceil(log2 J) parallel rounds per step, forward and backward.
    """
    e, alpha_prev = at_least_float32(e), at_least_float32(alpha_prev)
    if src_lengths is not None:
        e = e.masked_fill(spread(padding_mask(src_lengths, e.size(-1)), e), float("-inf"))
    if preserve_mass:
        e = e.masked_fill(spread(last_position(src_lengths, e), e), float("inf"))
    steps = e if e.dim() > alpha_prev.dim() else e.unsqueeze(-2)
    alpha: Tensor = _ExpectedAlignment.apply(steps, alpha_prev.to(e.dtype))  # type: ignore[no-untyped-call]
    return alpha.view_as(e)


def expected_alignment_parallel(
    e: Tensor,
    alpha_prev: Tensor,
    src_lengths: Optional[Tensor] = None,
    preserve_mass: bool = True,
    eps: float = 1e-10,
) -> Tensor:
    """alpha_i by the published closed form (Raffel et al. 2017), for replication of published numbers only.

        alpha_i = p_i cp_i cumsum(alpha_{i-1} / clip(cp_i, eps, 1)),      cp_ij = prod_{l<j} (1 - p_il)

    Same arguments and result as `expected_alignment`; eps is the clip of the denominator (1e-10 in the authors'
    codebase, 1e-6 in fairseq).

    Domain: right only while cp stays above eps up to the head, that is while the head has not passed tokens with a
    high p.  Where it has (a burst of writes after a wait, noise of standard deviation 4) the mass is lost; with
    `preserve_mass` the lost mass is put on the last token, so that the expected delay is wrong.  With p = 0.9 at twenty
    passed tokens the whole row is lost.
    """
    if e.dim() > alpha_prev.dim():
        rows = []
        for e_i in e.unbind(-2):
            alpha_prev = expected_alignment_parallel(e_i, alpha_prev, src_lengths, preserve_mass, eps)
            rows.append(alpha_prev)
        return torch.stack(rows, dim=-2)
    e, alpha_prev = at_least_float32(e), at_least_float32(alpha_prev)
    p = torch.sigmoid(e)
    if src_lengths is not None:
        p = p.masked_fill(spread(padding_mask(src_lengths, e.size(-1)), p), 0.0)
    log_survival = (1 - p).clamp(min=torch.finfo(p.dtype).tiny).log()
    cp = (log_survival.cumsum(-1) - log_survival).exp()
    alpha = p * cp * (alpha_prev.to(p.dtype) / cp.clamp(eps, 1.0)).cumsum(-1)
    if not preserve_mass:
        return alpha
    residual = (1 - alpha.sum(-1, keepdim=True)).clamp(min=0)
    return alpha + residual * spread(last_position(src_lengths, alpha), alpha).to(alpha.dtype)
