"""Scaled dot products of several heads (Vaswani et al. 2017): energies, and the values that are looked at."""

import math

import torch
from torch import Tensor, nn

from ..functional.heads import join_heads, split_heads
from ..functional.pace import paced, store_paced
from ..functional.product import ProductPrecision
from .energy import Energy, HeadWeights, Weights
from .options import AttentionOptions


class HeadProjections(nn.Module):
    """Matrices from features to H heads of size d, side by side."""

    def __init__(self, options: AttentionOptions, heads: int) -> None:
        super().__init__()
        self.heads, self.products = heads, options.products or ProductPrecision()

    def to_heads(self, x: Tensor, w: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, d), or (B, D) -> (B, H, d).  w: (D, H d)."""
        return split_heads(self.products.linear(x, w.t()), self.heads)


class DotProductEnergy(HeadProjections, Energy):
    """u_hj = (W_q s)_h . (W_s h_j)_h / sqrt(d) for each of H heads of size d."""

    def __init__(self, options: AttentionOptions, heads: int) -> None:
        super().__init__(options, heads)
        self.w_s = matrix(options.memory_dim, options.energy_dim)
        self.w_q = matrix(options.query_dim, options.energy_dim)

    def project(self, h: Tensor) -> Tensor:
        """(B, J, memory_dim) -> (B, H, J, d), or (B, memory_dim) -> (B, H, d)."""
        return self.to_heads(h, self.w_s)

    def query(self, s: Tensor) -> Tensor:
        """(B, I, query_dim) -> (B, H, I, d), or (B, query_dim) -> (B, H, d)."""
        return self.to_heads(s, self.w_q)

    def weights(self, keys: Tensor) -> Weights:
        return None

    def forward(self, keys: Tensor, query: Tensor, weights: Weights) -> Tensor:
        """keys: (B, H, J, d), query: (B, H, I, d) -> (B, H, I, J); query: (B, H, d) -> (B, H, J)."""
        one = query.dim() < keys.dim()
        products = torch.matmul(query.unsqueeze(-2) if one else query, keys.transpose(-1, -2))
        energy = products / math.sqrt(query.size(-1))
        if weights is not None:
            assert isinstance(weights, HeadWeights)
            energy = weights.g * energy + weights.r
        return energy.squeeze(-2) if one else energy


class MonotonicDotProductEnergy(DotProductEnergy):
    """e_hj = g_h (W_q s)_h . (W_s h_j)_h / sqrt(d) + r_h.

    g starts small, at 1 / sqrt(d), so that stopping hardly depends on the source at first; a head that becomes decisive
    too soon learns to stop too early.  g and r are stored divided by `pace`, and the projections by `projection_pace`,
    as in `MonotonicEnergy`.
    """

    def __init__(self, options: AttentionOptions, heads: int) -> None:
        super().__init__(options, heads)
        self.pace, self.projection_pace = options.head_pace, options.projection_pace
        store_paced(self.projection_pace, self.w_s, self.w_q)
        self.g = nn.Parameter(torch.full((heads,), math.sqrt(heads / options.energy_dim) / self.pace))
        self.r = nn.Parameter(torch.full((heads,), float(options.energy_bias) / self.pace))

    def project(self, h: Tensor) -> Tensor:
        return self.to_heads(h, paced(self.w_s, self.projection_pace))

    def query(self, s: Tensor) -> Tensor:
        return self.to_heads(s, paced(self.w_q, self.projection_pace))

    def weights(self, keys: Tensor) -> HeadWeights:
        return HeadWeights(paced(self.g, self.pace).view(-1, 1, 1), paced(self.r, self.pace).view(-1, 1, 1))


class Values(HeadProjections):
    """Value and output projections of H heads: W_v h and W_o c."""

    def __init__(self, options: AttentionOptions, heads: int) -> None:
        super().__init__(options, heads)
        self.w_v = matrix(options.memory_dim, options.energy_dim)
        self.w_o = matrix(options.energy_dim, options.query_dim)

    def project(self, h: Tensor) -> Tensor:
        """(B, J, memory_dim) -> (B, H, J, d), or (B, memory_dim) -> (B, H, d)."""
        return self.to_heads(h, self.w_v)

    def join(self, c: Tensor) -> Tensor:
        """(B, H, I, d) -> (B, I, query_dim), or (B, H, d) -> (B, query_dim)."""
        return self.products.linear(join_heads(c), self.w_o.t())


def matrix(inputs: int, outputs: int) -> nn.Parameter:
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(inputs, outputs)))
