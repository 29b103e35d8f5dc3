"""alpha: where the monotonic head stops (paper, section 3.1, and section 3.4 for mass preservation).

The head of target step i scans the source from its last position t_{i-1} and stops at j with probability
p_ij = sigmoid(e_ij).  alpha_ij = P(t_i = j) obeys

    q_ij     = (1 - p_i,j-1) q_i,j-1 + alpha_i-1,j          probability that the head ever inspects j
    alpha_ij = p_ij q_ij

which is the paper's recurrence with alpha_i,j-1 / p_i,j-1 = q_i,j-1, so that nothing is ever divided.
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812

from .masking import at_least_float32, last_position, padding_mask


def linear_scan(a: Tensor, b: Tensor, reverse: bool = False) -> Tensor:
    """x_j = a_j x_{j-1} + b_j with x_{-1} = 0; reverse: x_j = a_j x_{j+1} + b_j with x_J = 0.  a, b: (B, J) -> (B, J).

    Hillis-Steele: ceil(log2 J) rounds of whole-row operations.  After the round with stride d, (a_j, x_j) composes
    the 2d recurrence steps that end at j.  No division; with a, b >= 0 every rounding error is relative.
    """
    x, stride = b, 1
    while stride < b.size(-1):
        shift = (-stride, stride) if reverse else (stride, -stride)  # j meets j -+ stride, 0 outside the row
        x = torch.addcmul(x, a, F.pad(x, shift))
        stride *= 2
        if stride < b.size(-1):
            a = a * F.pad(a, shift)
    return x


class _ExpectedAlignment(torch.autograd.Function):
    """alpha = p q and its gradient, one scan each way.

    With G = dL/dalpha and R_j = p_j G_j + (1 - p_j) R_{j+1}  (the expected G of a head that stands at j):

        dL/dalpha_prev_j = R_j          dL/de_j = p_j (1 - p_j) q_j (G_j - R_{j+1})

    Masked by infinite energies: +inf always stops, -inf never does, and neither gets a gradient, p (1 - p) being 0.
    """

    @staticmethod
    def forward(ctx: Any, e: Tensor, alpha_prev: Tensor, always: Optional[Tensor], never: Optional[Tensor]) -> Tensor:
        if never is not None:
            e = e.masked_fill(never, float("-inf"))
        if always is not None:
            e = e.masked_fill(always, float("inf"))
        # sigmoid(-e) and never 1 - p: exact to the last bit when p is close to 1
        p, one_minus_p = torch.sigmoid(e), torch.sigmoid(-e)
        q = linear_scan(F.pad(one_minus_p, (1, -1)), alpha_prev)
        ctx.save_for_backward(p, one_minus_p, q)
        return p * q

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor, None, None]:
        p, one_minus_p, q = ctx.saved_tensors
        reward = linear_scan(one_minus_p, p * grad, reverse=True)
        return p * one_minus_p * q * (grad - F.pad(reward, (-1, 1))), reward, None, None


def expected_alignment(
    e: Tensor, alpha_prev: Tensor, src_lengths: Optional[Tensor] = None, preserve_mass: bool = True
) -> Tensor:
    """alpha_i, the distribution of the stop position t_i, from the energies e_i and alpha_{i-1}.

        alpha_ij = p_ij sum_{k<=j} alpha_i-1,k prod_{l=k}^{j-1} (1 - p_il),      p_ij = sigmoid(e_ij)

    e, alpha_prev: (B, J), energies of any size (+-inf for a hard decision), alpha_prev in [0, 1].
    src_lengths:   (B,), None when every sentence fills its row.
    preserve_mass: p_{i,|x|} = 1 (paper, section 3.4): what no earlier token took stops at the sentence's own last
                   token, and the row sums to 1.  Otherwise the row loses what runs off the end of the source.
    Returns alpha_i: (B, J) in [0, 1], float32 or better; padding gets 0.
    Exact for every p (see `expected_alignment_parallel` for the published form, which is not).
    O(J log J) work in ceil(log2 J) parallel rounds, forward and backward.
    """
    e, alpha_prev = at_least_float32(e), at_least_float32(alpha_prev)
    always = last_position(src_lengths, e) if preserve_mass else None
    never = None if src_lengths is None else padding_mask(src_lengths, e.size(-1))
    result: Tensor = _ExpectedAlignment.apply(e, alpha_prev.to(e.dtype), always, never)  # type: ignore[no-untyped-call]
    return result


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
    `preserve_mass` the loss reappears at the last token and the expected delay is fiction.  p = 0.9 at twenty passed
    tokens keeps nothing of the row.
    """
    e, alpha_prev = at_least_float32(e), at_least_float32(alpha_prev)
    p = torch.sigmoid(e)
    if src_lengths is not None:
        p = p.masked_fill(padding_mask(src_lengths, e.size(-1)), 0.0)
    log_survival = (1 - p).clamp(min=torch.finfo(p.dtype).tiny).log()
    cp = (log_survival.cumsum(-1) - log_survival).exp()
    alpha = p * cp * (alpha_prev.to(p.dtype) / cp.clamp(eps, 1.0)).cumsum(-1)
    if not preserve_mass:
        return alpha
    residual = (1 - alpha.sum(-1, keepdim=True)).clamp(min=0)
    return alpha + residual * last_position(src_lengths, alpha).to(alpha.dtype)
