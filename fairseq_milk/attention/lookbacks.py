"""Lookbacks: how far back the attention looks from the position where its head stopped.

A lookback has two methods.  `expected`, for training, gives beta averaged over the stop position; `certain`, for
decoding and for fixed schedules, gives the softmax of u over what is seen.  `u` is the soft energy, None for a lookback
that needs none.
"""

from abc import ABC, abstractmethod
from typing import Optional

from torch import Tensor

from ..functional import chunkwise_lookback, infinite_lookback, prefix_softmax
from ..functional.masking import spread
from .memory import Memory
from .options import AttentionOptions


class Lookback(ABC):
    soft = True  # whether it has an energy u
    looks_at_everything = True  # whether it sees all that was read, and so can translate from the end of the source
    reach: Optional[int] = None  # tokens that it sees, up to the one on which the head stopped; None: all

    def __init__(self, options: AttentionOptions) -> None:
        self.options = options

    @abstractmethod
    def expected(self, alpha: Tensor, u: Optional[Tensor], memory: Memory) -> Tensor:
        """beta, averaged over stop positions with distribution alpha.  (..., J) -> (..., J)."""

    @abstractmethod
    def certain(self, u: Optional[Tensor], memory: Memory) -> Tensor:
        """beta of a head that has stopped on the last token of the memory.  (..., J) -> (..., J)."""


class Here(Lookback):
    """Only the token on which the head stopped: beta_i = alpha_i   (Raffel et al. 2017)."""

    soft = looks_at_everything = False
    reach = 1

    def expected(self, alpha: Tensor, u: Optional[Tensor], memory: Memory) -> Tensor:
        return alpha

    def certain(self, u: Optional[Tensor], memory: Memory) -> Tensor:
        return memory.last


class Window(Lookback):
    """The last w tokens: beta_ij = sum_{k=j}^{j+w-1} alpha_ik exp(u_ij) / sum_{l=k-w+1}^{k} exp(u_il)

    (Chiu and Raffel 2018).
    """

    looks_at_everything = False

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__(options)
        self.size = self.reach = options.chunk_size
        if self.size < 1:
            raise ValueError(f"the chunk size of MoChA must be at least 1, got {self.size}")

    def expected(self, alpha: Tensor, u: Optional[Tensor], memory: Memory) -> Tensor:
        assert u is not None
        return chunkwise_lookback(alpha, memory.masked(u), self.size)

    def certain(self, u: Optional[Tensor], memory: Memory) -> Tensor:
        assert u is not None
        if memory.exact:
            return memory.masked(u).softmax(-1)
        return prefix_softmax(u, spread(memory.lengths, u[..., 0]), window=self.size)


class Everything(Lookback):
    """Everything that has been read: beta_ij = sum_{k=j}^{|x|} alpha_ik exp(u_ij) / sum_{l=1}^{k} exp(u_il)

    (paper, section 3.2, equation (beta); a softmax if the stop is known).
    """

    def expected(self, alpha: Tensor, u: Optional[Tensor], memory: Memory) -> Tensor:
        assert u is not None
        return infinite_lookback(alpha, memory.masked(u))

    def certain(self, u: Optional[Tensor], memory: Memory) -> Tensor:
        assert u is not None
        return memory.masked(u).softmax(-1)
