"""Energies: how well a source state h_j fits the decoder state s."""

import math
from abc import ABC, abstractmethod
from typing import Any, Optional, Tuple

import torch
from torch import Tensor, nn

from ..functional.energy import EnergyWeights, energy_weights, prepared_energy
from ..functional.heads import join_heads, split_heads
from ..functional.product import ProductPrecision

Weights = Any  # what multiplies and shifts the energies of a batch, of a kind of each energy's own


class Energy(nn.Module, ABC):
    """How well each source state fits the decoder state; J energies, and H J with several heads."""

    @abstractmethod
    def project(self, h: Tensor) -> Tensor:
        """The keys of source states, once for each of them.  (..., memory_dim) -> (..., energy_dim)."""

    @abstractmethod
    def query(self, s: Tensor) -> Tensor:
        """What a target step asks.  (..., query_dim) -> (..., energy_dim)."""

    @abstractmethod
    def weights(self, keys: Tensor) -> Weights:
        """What all steps of a batch with these keys have in common: computed once, not once a target step."""

    @abstractmethod
    def forward(self, keys: Tensor, query: Tensor, weights: Weights) -> Tensor:
        """The energies of one target step, (..., J), or of several, (..., I, J)."""


class AdditiveEnergy(Energy):
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
        """W_q s, once for every target step.  (..., query_dim) -> (..., energy_dim)."""
        return s @ self.w_q

    def weights(self, keys: Tensor) -> EnergyWeights:
        return energy_weights(self.v, None, keys)

    def forward(self, keys: Tensor, query: Tensor, weights: Weights) -> Tensor:
        """keys: (B, J, energy_dim), query: (B, energy_dim) -> (B, J); query: (B, I, energy_dim) -> (B, I, J)."""
        if query.dim() == keys.dim():  # one step after the other: together they would need I times the memory
            return torch.stack([prepared_energy(keys, q, weights) for q in query.unbind(1)], dim=1)
        return prepared_energy(keys, query, weights)


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
        return s @ self.w_q + self.b if s.dim() > 2 else torch.addmm(self.b, s, self.w_q)

    def weights(self, keys: Tensor) -> EnergyWeights:
        """g v / ||v|| and r."""
        return energy_weights(self.pace * self.g * self.v / self.v.norm(), self.pace * self.r, keys)


class DotProductEnergy(Energy):
    """u_hj = (W_q s)_h . (W_s h_j)_h / sqrt(d) for each of H heads of size d   (Vaswani et al. 2017)."""

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        energy_dim: int,
        heads: int,
        products: Optional[ProductPrecision] = None,
    ) -> None:
        super().__init__()
        self.heads, self.products = heads, products or ProductPrecision()
        self.w_s = nn.Parameter(nn.init.xavier_uniform_(torch.empty(memory_dim, energy_dim)))
        self.w_q = nn.Parameter(nn.init.xavier_uniform_(torch.empty(query_dim, energy_dim)))

    def project(self, h: Tensor) -> Tensor:
        """(B, J, memory_dim) -> (B, H, J, d), or (B, memory_dim) -> (B, H, d)."""
        return split_heads(self.products.linear(h, self.w_s.t()), self.heads)

    def query(self, s: Tensor) -> Tensor:
        """(B, I, query_dim) -> (B, H, I, d), or (B, query_dim) -> (B, H, d)."""
        return split_heads(self.products.linear(s, self.w_q.t()), self.heads)

    def weights(self, keys: Tensor) -> Weights:
        return None

    def forward(self, keys: Tensor, query: Tensor, weights: Weights) -> Tensor:
        """keys: (B, H, J, d), query: (B, H, I, d) -> (B, H, I, J); query: (B, H, d) -> (B, H, J)."""
        one = query.dim() < keys.dim()
        products = torch.matmul(query.unsqueeze(-2) if one else query, keys.transpose(-1, -2))
        energy = products / math.sqrt(query.size(-1))
        if weights is not None:
            g, r = weights
            energy = g * energy + r
        return energy.squeeze(-2) if one else energy


class MonotonicDotProductEnergy(DotProductEnergy):
    """e_hj = g_h (W_q s)_h . (W_s h_j)_h / sqrt(d) + r_h.

    g starts at 1 / sqrt(d), so that at first the head neither stops nor waits for what it reads: a head that decides
    before the rest of the model can translate settles where a guess is good enough.  g and r are stored divided by
    `pace`, as in `MonotonicEnergy`.
    """

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        energy_dim: int,
        heads: int,
        bias: float,
        pace: float,
        products: Optional[ProductPrecision] = None,
    ) -> None:
        super().__init__(query_dim, memory_dim, energy_dim, heads, products)
        self.pace = pace
        self.g = nn.Parameter(torch.full((heads,), math.sqrt(heads / energy_dim) / pace))
        self.r = nn.Parameter(torch.full((heads,), float(bias) / pace))

    def weights(self, keys: Tensor) -> Tuple[Tensor, Tensor]:
        """g and r of each head.  (H, 1, 1)."""
        return (self.pace * self.g).view(-1, 1, 1), (self.pace * self.r).view(-1, 1, 1)


class Values(nn.Module):
    """What each of H heads looks at, W_v h, and what becomes of what they have seen, W_o c."""

    def __init__(
        self, query_dim: int, memory_dim: int, energy_dim: int, heads: int, products: Optional[ProductPrecision] = None
    ) -> None:
        super().__init__()
        self.heads, self.products = heads, products or ProductPrecision()
        self.w_v = nn.Parameter(nn.init.xavier_uniform_(torch.empty(memory_dim, energy_dim)))
        self.w_o = nn.Parameter(nn.init.xavier_uniform_(torch.empty(energy_dim, query_dim)))

    def project(self, h: Tensor) -> Tensor:
        """(B, J, memory_dim) -> (B, H, J, d), or (B, memory_dim) -> (B, H, d)."""
        return split_heads(self.products.linear(h, self.w_v.t()), self.heads)

    def join(self, c: Tensor) -> Tensor:
        """(B, H, I, d) -> (B, I, query_dim), or (B, H, d) -> (B, query_dim)."""
        return self.products.linear(join_heads(c), self.w_o.t())
