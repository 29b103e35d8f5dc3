"""Delays g and what they cost: AP, AL and DAL (paper, sections 3.3 and 4).

Every metric takes the delays g: (B, I), g_i = source tokens read before y_i is written, the lengths |x| and |y|: (B,)
and returns one value per sentence, (B,).  Positions beyond |y| are ignored.  gamma = |y| / |x|.
"""

from fractions import Fraction

import torch
from torch import Tensor

from .masking import at_least_float32, padding_mask


def expected_delays(alpha: Tensor) -> Tensor:
    """g_i = sum_j j alpha_ij  (paper, equation (delay)).  alpha: (..., J) -> (...), j counted from 1."""
    alpha = at_least_float32(alpha)
    j = torch.arange(1, alpha.size(-1) + 1, device=alpha.device, dtype=alpha.dtype)
    # Not a matrix product, which autocast would compute in half precision, with errors of half a token.
    return (alpha * j).sum(-1)


def wait_k_delay(k: int, i: int, rate: float = 1.0) -> int:
    """k + floor((i-1) / r): where wait-k with emission rate r stops for target token i, if the source is that long.

    The rate is read as the decimal that it prints as (1.1 = 11/10), so that floor is exact.
    """
    if k < 1:
        raise ValueError(f"k of wait-k must be at least 1, got {k}")
    if not 0 < rate < float("inf"):
        raise ValueError(f"the emission rate of wait-k must be positive, got {rate}")
    r = Fraction(str(rate))
    return k + (i - 1) * r.denominator // r.numerator  # int64 would overflow: 1/3 as a decimal has a large denominator


def wait_k_delays(k: int, src_lengths: Tensor, tgt_size: int, rate: float = 1.0) -> Tensor:
    """g_i = min(k + floor((i-1) / r), |x|), the schedule of wait-k.  src_lengths: (B,) -> (B, tgt_size), int64."""
    g = [wait_k_delay(k, i, rate) for i in range(1, tgt_size + 1)]
    return torch.minimum(torch.tensor(g, device=src_lengths.device, dtype=torch.int64), src_lengths.unsqueeze(1))


def _lags(g: Tensor, src_lengths: Tensor, tgt_lengths: Tensor) -> Tensor:
    """g_i - (i-1) / gamma: how far y_i lags behind an ideal translator.  (B, I)."""
    i = torch.arange(g.size(-1), device=g.device)
    return g - i * (src_lengths.to(g.dtype) / tgt_lengths.clamp(min=1).to(g.dtype)).unsqueeze(1)


def _masked_mean(values: Tensor, lengths: Tensor) -> Tensor:
    """mean_{i <= lengths_b} values_bi; 0 for an empty sentence.  (B, I) -> (B,)."""
    total = values.masked_fill(padding_mask(lengths, values.size(-1)), 0.0).sum(-1)
    return total / lengths.clamp(min=1).to(values.dtype)


def average_proportion(g: Tensor, src_lengths: Tensor, tgt_lengths: Tensor) -> Tensor:
    """AP = 1 / (|x| |y|) sum_i g_i, in [0, 1]  (Cho and Esipova 2016).  Differentiable in g."""
    g = at_least_float32(g)
    return _masked_mean(g, tgt_lengths) / src_lengths.clamp(min=1).to(g.dtype)


def average_lagging(g: Tensor, src_lengths: Tensor, tgt_lengths: Tensor) -> Tensor:
    """AL = 1 / tau sum_{i <= tau} g_i - (i-1) / gamma,   tau = min {i : g_i = |x|}, else |y|  (Ma et al. 2018).

    The paper leaves tau undefined for a system that never reads the whole source; all tokens count then.
    Not differentiable in tau.
    """
    g = at_least_float32(g)
    complete = g >= src_lengths.unsqueeze(1).to(g.dtype)
    before = (complete.cumsum(-1) == 0).sum(-1)  # target tokens that precede the first complete one
    tau = torch.minimum(before + 1, tgt_lengths)
    return _masked_mean(_lags(g, src_lengths, tgt_lengths), tau)


def differentiable_average_lagging(g: Tensor, src_lengths: Tensor, tgt_lengths: Tensor) -> Tensor:
    """DAL = 1 / |y| sum_i g'_i - (i-1) / gamma,   g'_1 = g_1,   g'_i = max(g_i, g'_{i-1} + 1 / gamma).

    Since g'_i - (i-1)/gamma = max_{l <= i} g_l - (l-1)/gamma, it is the mean of a cumulative maximum: parallel in i,
    differentiable in g (paper, section 4.2).
    """
    g = at_least_float32(g)
    return _masked_mean(_lags(g, src_lengths, tgt_lengths).cummax(-1).values, tgt_lengths)
