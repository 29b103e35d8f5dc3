"""The interface of the mechanisms: one object with an expected half for training and an incremental half for decoding.

A mechanism is *where it stops* times *how far back it looks*.  In training it is asked for the expected context of
every target step; in decoding it is asked, given only what has been read, whether to write, and then what it sees.
"""

import logging
from abc import ABC, abstractmethod
from typing import Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from ..functional import padding_mask
from ..functional.product import ProductPrecision
from .energy import AdditiveEnergy

logger = logging.getLogger(__name__)


class AttentionOptions(NamedTuple):
    """What a mechanism may be told; each takes what concerns it."""

    query_dim: int
    memory_dim: int
    energy_dim: int
    noise: float = 4.0  # n: standard deviation of the pre-sigmoid noise
    noise_ramp: int = 0  # updates over which the noise grows to n
    energy_bias: float = -1.0  # r at the start
    head_pace: float = 1.0  # how much faster than the other parameters r and g learn
    preserve_mass: bool = True
    exact_alignment: bool = True  # False: the published closed form
    chunk_size: int = 8  # w of MoChA
    k: int = 6  # of wait-k
    rate: float = 1.0  # emission rate of wait-k
    products: Optional[ProductPrecision] = None  # type of the matrix products


class Memory(NamedTuple):
    """What a mechanism knows of the source: everything in training, just the prefix that has been read in decoding."""

    h: Tensor  # (B, J, memory_dim)
    keys: Dict[str, Tensor]  # (B, J, energy_dim), W_s h for each energy of the mechanism
    lengths: Tensor  # (B,), tokens of h that count

    def select(self, rows: Tensor) -> "Memory":
        """Of these sentences.  index_select copies whole rows, four times as fast as h[rows]."""
        keys = {name: x.index_select(0, rows) for name, x in self.keys.items()}
        return Memory(self.h.index_select(0, rows), keys, self.lengths.index_select(0, rows))

    def filled(self) -> "Memory":
        """Without the room that no sentence has filled yet."""
        size = int(self.lengths.max())
        return Memory(self.h[:, :size], {name: x[:, :size] for name, x in self.keys.items()}, self.lengths)


Queries = Dict[str, Tensor]  # (B, energy_dim), W_q s for each energy of the mechanism


class AttentionState(NamedTuple):
    """What the expected half carries from target step to target step."""

    alpha: Tensor  # (B, J), alpha_{i-1}
    i: int  # target steps made


class AttentionOutput(NamedTuple):
    c: Tensor  # (B, memory_dim), context
    beta: Tensor  # (B, J), attention
    alpha: Tensor  # (B, J), distribution of the stop position


class SimultaneousAttention(nn.Module, ABC):
    """A sixth mechanism implements the three abstract methods and gets a name in `attention/__init__.py`."""

    streaming = True  # False: it never writes before the source has ended

    def energies(self) -> Dict[str, AdditiveEnergy]:
        """The energies of this mechanism by name: those whose keys the memory holds."""
        return {name: module for name, module in self.named_children() if isinstance(module, AdditiveEnergy)}

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """A checkpoint of another mechanism: energies that both have are taken, one that it lacks stays as it is built.

        Called by fairseq.  So a model with soft attention is the start of all others: a head far below zero waits until
        the end, where MILk is soft attention.
        """
        for key in [key for key in state_dict if key.startswith(f"{name}.")]:
            if key[len(name) + 1 :].partition(".")[0] not in self.energies():
                del state_dict[key]
        for part, energy in self.energies().items():
            if not any(key.startswith(f"{name}.{part}.") for key in state_dict):
                logger.warning(f"the checkpoint is of another attention: {name}.{part} starts untrained")
                state_dict.update(energy.state_dict(prefix=f"{name}.{part}."))

    def queries(self, s: Tensor) -> Queries:
        """What target step i asks, once however often it is asked.  s: (B, query_dim)."""
        return {name: energy.query(s) for name, energy in self.energies().items()}

    def energy(self, name: str, queries: Queries, memory: Memory) -> Tensor:
        """One of the energies, for every token of the memory.  (B, J)."""
        result: Tensor = self.energies()[name](memory.keys[name], queries[name])
        return result

    # ---- training -----------------------------------------------------------------------------------------------

    def remember(self, h: Tensor, lengths: Tensor) -> Memory:
        """Pack the source, once a batch.  h: (B, J, memory_dim), lengths: (B,)."""
        return Memory(h, {name: energy.project(h) for name, energy in self.energies().items()}, lengths)

    def begin(self, memory: Memory) -> AttentionState:
        """Before the first target step the head stands on the first source token: alpha_0 = (1, 0, ..., 0)."""
        dtype = torch.promote_types(memory.h.dtype, torch.float32)
        alpha = torch.zeros(memory.h.shape[:2], dtype=dtype, device=memory.h.device)
        alpha[:, 0] = 1.0
        return AttentionState(alpha, 0)

    @abstractmethod
    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool
    ) -> Tuple[AttentionOutput, AttentionState]:
        """Target step i over the whole source: the context under the expected schedule, differentiable.

        s: (B, query_dim).  hard: learned heads decide (e > 0, no noise) instead of giving probabilities; the result is
        then that of the incremental half.
        """

    # ---- decoding -----------------------------------------------------------------------------------------------

    def read(self, memory: Memory, h: Tensor, rows: Tensor) -> Memory:
        """One more source state for some sentences.  rows: (R,), which of them; h: (R, memory_dim), theirs.

        The buffers of `memory` are written in place and doubled when they are full, so that a token costs the same
        however many have been read.
        """
        if rows.numel() == 0:
            return memory
        columns = memory.lengths[rows]
        if int(columns.max()) >= memory.h.size(1):
            memory = Memory(_double(memory.h), {k: _double(x) for k, x in memory.keys.items()}, memory.lengths)
        memory.h[rows, columns] = h
        for name, energy in self.energies().items():
            memory.keys[name][rows, columns] = energy.project(h)
        return memory._replace(lengths=memory.lengths.index_add(0, rows, torch.ones_like(rows)))

    def nothing_read(self, batch: int, like: Tensor, room: int = 16) -> Memory:
        """The memory before the first READ, with room for some tokens.  like: any (..., memory_dim) tensor."""
        keys = {name: like.new_zeros(batch, room, energy.v.numel()) for name, energy in self.energies().items()}
        lengths = torch.zeros(batch, dtype=torch.long, device=like.device)
        return Memory(like.new_zeros(batch, room, like.size(-1)), keys, lengths)

    @abstractmethod
    def wants_to_write(self, queries: Queries, memory: Memory, i: int) -> Tensor:
        """Given what has been read (at least one token), write target token i (from 1) now?  (B,) bool.

        The end of the source is not the mechanism's business: there the decoder writes whatever the answer.
        """

    @abstractmethod
    def attend(self, queries: Queries, memory: Memory) -> AttentionOutput:
        """The context for the target token that is about to be written."""


def context(beta: Tensor, memory: Memory) -> Tensor:
    """c = sum_j beta_j h_j.  (B, J), (B, J, D) -> (B, D)."""
    return torch.bmm(beta.to(memory.h.dtype).unsqueeze(1), memory.h).squeeze(1)


def stopped_at(lengths: Tensor, like: Tensor) -> Tensor:
    """alpha of a head that has stopped for certain: one-hot at position `lengths`.  (B,), (B, J) -> (B, J)."""
    size = like.size(-1)
    stop = padding_mask(lengths, size) ^ padding_mask(lengths - 1, size)
    return stop.to(torch.promote_types(like.dtype, torch.float32))


def _double(buffer: Tensor) -> Tensor:
    return torch.cat((buffer, torch.zeros_like(buffer)), dim=1)
