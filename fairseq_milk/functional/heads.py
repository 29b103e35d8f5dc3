"""Functions for several heads: splitting features, and combining stop positions and delays.

With several heads a token is written when every head has stopped, so its delay is the largest of theirs.
"""

import torch
from torch import Tensor

from .masking import at_least_float32


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Split features into heads: (B, T, D) -> (B, H, T, D/H), or (B, D) -> (B, H, D/H)."""
    x = x.view(*x.shape[:-1], heads, x.size(-1) // heads)
    return x.transpose(1, 2) if x.dim() == 4 else x


def join_heads(x: Tensor) -> Tensor:
    """The inverse of `split_heads`: (B, H, T, D/H) -> (B, T, D), or (B, H, D/H) -> (B, D)."""
    return (x.transpose(1, 2) if x.dim() == 4 else x).flatten(-2)


def last_stop(alpha: Tensor) -> Tensor:
    """The distribution of the position at which the last of H heads stops, each stopping independently.

        P(max_h t_h <= j) = prod_h sum_{k<=j} alpha_hk

    alpha: (B, H, ..., J) -> (B, ..., J), float32 or better; for one-hot rows, the largest position.
    """
    alpha = at_least_float32(alpha)
    if alpha.size(1) == 1:
        return alpha[:, 0]
    stopped = alpha.cumsum(-1).prod(1)
    return torch.cat((stopped[..., :1], stopped.diff(dim=-1)), dim=-1)


def weighted_delay(g: Tensor) -> Tensor:
    """The weighted average of the delays of H heads (Ma et al. 2020, Monotonic Multihead Attention, equation 10).

        g_i = sum_h w_h g_hi,     w_h = exp(g_hi) / sum_l exp(g_li)

    The slowest heads have the largest weights: a token waits for them.  Since dg_i / dg_hi = w_h (1 + g_hi - g_i),
    the average is also lowered by delaying a head that is more than one token ahead of it.  g: (B, H, I) -> (B, I).
    """
    return (g.softmax(1) * g).sum(1)


def delay_variance(g: Tensor) -> Tensor:
    """The variance of the delays of H heads (Ma et al. 2020, equation 11): 1/H sum_h (g_hi - mean_l g_li)^2.

    g: (B, H, I) -> (B, I).
    """
    return g.var(1, unbiased=False)
