"""Energies: how well a source state h_j fits the decoder state s."""

import math
from typing import Optional

import torch
from torch import Tensor, nn

from ..functional import additive_energy
from ..functional.product import ProductPrecision


class AdditiveEnergy(nn.Module):
    """u_j = v . tanh(W_s h_j + W_q s)   (paper, SoftmaxEnergy; Bahdanau et al. 2015).

    Weights start as N(0, 1 / sqrt(fan-in)), as in the authors' codebase.
    """

    def __init__(
        self, query_dim: int, memory_dim: int, energy_dim: int, products: Optional[ProductPrecision] = None
    ) -> None:
        super().__init__()
        self.products = products or ProductPrecision()
        self.w_s = nn.Parameter(torch.randn(memory_dim, energy_dim) / math.sqrt(memory_dim))
        self.w_q = nn.Parameter(torch.randn(query_dim, energy_dim) / math.sqrt(query_dim))
        self.v = nn.Parameter(torch.randn(energy_dim) / math.sqrt(energy_dim))

    def project(self, h: Tensor) -> Tensor:
        """W_s h, once for every source state.  (..., memory_dim) -> (..., energy_dim)."""
        return self.products.linear(h, self.w_s.t())

    def query(self, s: Tensor) -> Tensor:
        """W_q s, once for every target step.  (B, query_dim) -> (B, energy_dim)."""
        return s @ self.w_q

    def forward(self, keys: Tensor, query: Tensor) -> Tensor:
        """keys: (B, J, energy_dim), query: (B, energy_dim) -> (B, J)."""
        return additive_energy(keys, query, self.v)


class MonotonicEnergy(AdditiveEnergy):
    """e_j = g (v / ||v||) . tanh(W_s h_j + W_q s + b) + r   (Raffel et al. 2017).

    g starts at 1 / sqrt(d) and keeps the energies small, r at `bias`: the further below zero, the longer the head waits
    at first.  A sigmoid saturates where a softmax does not, hence the normalised v and the two scalars.

    Adam moves a parameter by at most the learning rate a step, and r and g have a long way to go: they are stored as
    r / pace and g / pace, and so move `pace` times as fast.
    """

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        energy_dim: int,
        bias: float,
        pace: float,
        products: Optional[ProductPrecision] = None,
    ) -> None:
        super().__init__(query_dim, memory_dim, energy_dim, products)
        self.pace = pace
        self.b = nn.Parameter(torch.zeros(energy_dim))
        self.g = nn.Parameter(torch.tensor(1 / math.sqrt(energy_dim) / pace))
        self.r = nn.Parameter(torch.tensor(float(bias) / pace))

    def query(self, s: Tensor) -> Tensor:
        """W_q s + b."""
        return torch.addmm(self.b, s, self.w_q)

    def forward(self, keys: Tensor, query: Tensor) -> Tensor:
        v = self.pace * self.g * self.v / self.v.norm()
        return additive_energy(keys, query, v) + self.pace * self.r
