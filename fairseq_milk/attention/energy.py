"""Energies: how well a source state h_j fits the decoder state s.  Additive ones; `dot_product` has the others."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple, Optional, Union

import torch
from torch import Tensor, nn

from ..functional.energy import EnergyWeights, energy_weights, prepared_energy
from ..functional.pace import paced, store_paced
from ..functional.product import ProductPrecision


class HeadWeights(NamedTuple):
    """Scale and offset of the dot products of each head."""

    g: Tensor  # (H, 1, 1)
    r: Tensor  # (H, 1, 1)


Weights = Union[EnergyWeights, HeadWeights, None]  # of additive energies, of learned heads, of plain dot products


class Energy(nn.Module, ABC):
    """How well each source state fits the decoder state; J energies, and H J with several heads."""

    @abstractmethod
    def project(self, h: Tensor) -> Tensor:
        """The keys of source states, computed once for each.  (..., memory_dim) -> (..., energy_dim)."""

    @abstractmethod
    def query(self, s: Tensor) -> Tensor:
        """The query of a target step.  (..., query_dim) -> (..., energy_dim)."""

    @abstractmethod
    def weights(self, keys: Tensor) -> Weights:
        """The weights that all target steps of a batch with these keys share, computed once per batch."""

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
        assert isinstance(weights, EnergyWeights)
        if query.dim() == keys.dim():  # one step after the other: together they would need I times the memory
            return torch.stack([prepared_energy(keys, q, weights) for q in query.unbind(1)], dim=1)
        return prepared_energy(keys, query, weights)


class MonotonicEnergy(AdditiveEnergy):
    """e_j = g (v / ||v||) . tanh(W_s h_j + W_q s + b) + r   (Raffel et al. 2017).

    g starts at 1 / sqrt(d) and keeps the energies small, r at `bias`: the further below zero, the longer the head waits
    at first.  A sigmoid saturates where a softmax does not, hence the normalised v and the two scalars.

    r and g have a long way to go, and in a short training so have the projections W_s, W_q, b and the direction of v:
    they are stored divided by `pace` and by `projection_pace`, and move that much faster (`functional.pace`).
    """

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        energy_dim: int,
        bias: float,
        pace: float,
        projection_pace: float = 1.0,
        products: Optional[ProductPrecision] = None,
    ) -> None:
        super().__init__(query_dim, memory_dim, energy_dim, products)
        self.pace, self.projection_pace = pace, projection_pace
        store_paced(projection_pace, self.w_s, self.w_q, self.v)
        self.b = nn.Parameter(torch.zeros(energy_dim))
        self.g = nn.Parameter(torch.tensor(1 / math.sqrt(energy_dim) / pace))
        self.r = nn.Parameter(torch.tensor(float(bias) / pace))

    def project(self, h: Tensor) -> Tensor:
        return self.products.linear(h, paced(self.w_s, self.projection_pace).t())

    def query(self, s: Tensor) -> Tensor:
        """W_q s + b."""
        w_q, b = paced(self.w_q, self.projection_pace), paced(self.b, self.projection_pace)
        return s @ w_q + b if s.dim() > 2 else torch.addmm(b, s, w_q)

    def weights(self, keys: Tensor) -> EnergyWeights:
        """g v / ||v|| and r."""
        v = paced(self.v, self.projection_pace)
        return energy_weights(paced(self.g, self.pace) * v / v.norm(), paced(self.r, self.pace), keys)
