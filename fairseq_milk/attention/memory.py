"""The source as seen by an attention, and the positions of its heads."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Dict, NamedTuple, Optional, Sequence

import torch
from torch import Tensor

from ..functional import last_position, padding_mask
from ..functional.masking import at_least_float32, spread
from .energy import Weights


@dataclass(frozen=True)
class Memory:
    """The source: everything in training, only the prefix that has been read in decoding.

    Masks, and weights that do not change within a batch, are computed once for each memory.
    """

    h: Tensor  # (B, J, memory_dim), or (B, H, J, d): values
    keys: Dict[str, Tensor]  # (B, J, energy_dim), or (B, H, J, d): W_s h for each energy of the attention
    lengths: Tensor  # (B,), or (B, 1) with heads: valid tokens of h; (..., I) or (B, H) if steps or heads differ
    weights: Dict[str, Weights]
    exact: bool = False  # it holds exactly the tokens that the lookback sees: nothing has to be masked, see `cut`

    @property
    def size(self) -> int:
        """J, including padding and free room."""
        return self.h.size(-2)

    @cached_property
    def barrier(self) -> Tensor:
        """Added to energies to mask invalid tokens: 0, or a value so low that the probability is 0.  (..., J)."""
        zeros = self.h.new_zeros((), dtype=torch.promote_types(self.h.dtype, torch.float32))
        return torch.where(padding_mask(self.lengths, self.size), torch.finfo(zeros.dtype).min / 4, zeros)

    @cached_property
    def ending(self) -> Tensor:
        """`barrier`, with a last token so high that every head stops there (mass preservation).  (..., J)."""
        highest = torch.finfo(self.barrier.dtype).max / 4
        return self.barrier.masked_fill(last_position(self.lengths, self.barrier), highest)

    @cached_property
    def last(self) -> Tensor:
        """alpha of a head that has stopped on the last token: one-hot at `lengths`.  (..., J)."""
        dtype = torch.promote_types(self.h.dtype, torch.float32)
        return last_position(self.lengths, self.h[..., 0]).to(dtype)

    def masked(self, u: Tensor) -> Tensor:
        """The energies u in float32 or better, with `barrier` added unless nothing has to be masked.  (..., J)."""
        return at_least_float32(u) if self.exact else u + spread(self.barrier, u)

    @property
    def read(self) -> Tensor:
        """The number of source tokens read of each sentence.  (B,)."""
        return self.lengths if self.lengths.dim() == 1 else self.lengths[:, 0]

    def until(self, delay: float) -> "Memory":
        """The memory with at most `delay` tokens read."""
        return self if delay >= self.size else replace(self, lengths=self.lengths.clamp(max=int(delay)))

    def until_each(self, delays: Sequence[float]) -> "Memory":
        """The memory for several target steps, each with its own delay: lengths are (B, I), or (B, 1, I)."""
        g = [int(min(delay, self.size)) for delay in delays]
        longest = torch.tensor(g, dtype=self.lengths.dtype, device=self.lengths.device)
        return replace(self, lengths=torch.minimum(self.lengths.unsqueeze(-1), longest))

    def seen_by(self, heads: "Heads") -> "Memory":
        """The memory seen by the heads from their positions; a head without a stop is at the last token."""
        return replace(self, lengths=torch.minimum(heads.position + 1, spread(self.lengths, heads.position)))

    def cut(self, end: int, reach: Optional[int]) -> "Memory":
        """What sentences that all stop on token number `end` see of it: the last `reach` tokens, None for all."""
        size = end if reach is None else min(end, reach)
        keys = {name: x.narrow(-2, end - size, size) for name, x in self.keys.items()}
        lengths = self.lengths.new_full(self.lengths.shape, size)
        return CutMemory(self.h.narrow(-2, end - size, size), keys, lengths, self.weights, exact=True)

    def select(self, rows: Tensor) -> "Memory":
        """The memory of these sentences.  index_select copies whole rows, four times as fast as h[rows]."""
        keys = {name: x.index_select(0, rows) for name, x in self.keys.items()}
        return replace(self, h=self.h.index_select(0, rows), keys=keys, lengths=self.lengths.index_select(0, rows))

    def filled(self) -> "Memory":
        """The memory without room that no sentence has filled yet."""
        size = int(self.lengths.max())
        keys = {name: x.narrow(-2, 0, size) for name, x in self.keys.items()}
        return replace(self, h=self.h.narrow(-2, 0, size), keys=keys)

    def doubled(self) -> "Memory":
        """The memory with twice the room."""
        keys = {name: _double(x) for name, x in self.keys.items()}
        return replace(self, h=_double(self.h), keys=keys)


class CutMemory(Memory):
    """The result of `cut`, for one target token: `last` is filled, which is faster than comparing positions."""

    @cached_property
    def last(self) -> Tensor:
        last = self.h.new_zeros(self.h.shape[:-1], dtype=torch.promote_types(self.h.dtype, torch.float32))
        last[..., -1] = 1.0
        return last


class Heads(NamedTuple):
    """The state of decoding: the position of each head.  (B,), or (B, H) with several heads."""

    position: Tensor  # index (from 0) of the source token that the head inspects next
    stopped: Tensor  # bool: whether the head has stopped for the next target token

    @property
    def ready(self) -> Tensor:
        """Whether every head has stopped, so that a token can be written.  (B,) bool."""
        return self.stopped.flatten(1).all(1) if self.stopped.dim() > 1 else self.stopped

    def after_read(self, rows: Tensor, lengths: Tensor) -> "Heads":
        """These sentences have read one more token: lengths (B,) in all.

        Heads that have not stopped inspect it next.  If all have, the READ was required by a knob, and all of them
        inspect the new token.
        """
        return self.sent_to(lengths - 1, torch.zeros_like(self.ready).index_fill(0, rows, True) & self.ready)

    def sent_to(self, position: Tensor, rows: Tensor) -> "Heads":
        """Move all heads of these sentences to this token.  position: (B,), rows: (B,) bool."""
        moved = spread(rows, self.stopped)
        return Heads(torch.where(moved, spread(position, self.position), self.position), self.stopped & ~moved)

    def furthest(self, lengths: Tensor) -> Tensor:
        """The number of source tokens up to the furthest head; all if a head has no stop.  (B,)."""
        position = self.position.flatten(1).amax(1) if self.position.dim() > 1 else self.position
        return torch.minimum(position + 1, lengths)

    def after_write(self, read: Tensor) -> "Heads":
        """The state for the next target token: each head looks again at the token where it stopped."""
        position = torch.minimum(self.position, spread(read - 1, self.position))
        return Heads(position, torch.zeros_like(self.stopped))

    def select(self, rows: Tensor) -> "Heads":
        return Heads(self.position.index_select(0, rows), self.stopped.index_select(0, rows))


def _double(buffer: Tensor) -> Tensor:
    return torch.cat((buffer, torch.zeros_like(buffer)), dim=-2)
