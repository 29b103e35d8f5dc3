"""The one attention class: a stop, a lookback and their energies.

It has an expected half for training, which sees the whole source, and an incremental half for decoding, which sees
only what has been read.  Tensors may have a head axis behind the batch: a token is written when every head has stopped.
"""

import logging
from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from .energy import (
    AdditiveEnergy,
    DotProductEnergy,
    Energy,
    MonotonicDotProductEnergy,
    MonotonicEnergy,
    Values,
    Weights,
)
from .lookbacks import Lookback
from .memory import Heads, Memory
from .options import AttentionOptions
from .stops import AttentionState, Stop

logger = logging.getLogger(__name__)

Queries = Dict[str, Tensor]  # (B, energy_dim), or (B, H, d): W_q s for each energy of the attention


class AttentionOutput(NamedTuple):
    """Of one target step; of several, with a dimension I before the last."""

    c: Tensor  # (B, memory_dim), context; with heads (B, query_dim)
    beta: Tensor  # (B, J), attention; with heads (B, H or 1, J)
    alpha: Tensor  # (B, J), distribution of the stop position; with heads (B, schedules or 1, J)


class SimultaneousAttention(nn.Module):
    """`head` is the energy e of a learned stop, `soft_energy` the energy u of a lookback; each where it is needed.

    decides: False for an attention that follows the schedule of another one, and so has no energy e.
    """

    head: Any  # Energies, additive or dot products
    soft_energy: Any

    def __init__(self, stop: Stop, lookback: Lookback, options: AttentionOptions, decides: bool = True) -> None:
        super().__init__()
        self.stop, self.lookback, self.decides = stop, lookback, decides
        self.schedules: Optional[int] = None  # heads with a schedule of their own; None: no head axis
        sizes = options.query_dim, options.memory_dim, options.energy_dim
        scalars = options.energy_bias, options.head_pace, options.products
        self.values: Optional[Values] = None
        if options.heads is None:
            if stop.learned:
                self.head = MonotonicEnergy(*sizes, *scalars)
            if lookback.soft:
                self.soft_energy = AdditiveEnergy(*sizes, options.products)
            return
        self.schedules = options.schedule_heads if stop.learned else 1
        if stop.learned and decides:
            self.head = MonotonicDotProductEnergy(*sizes, options.schedule_heads, *scalars)
        if lookback.soft:
            self.soft_energy = DotProductEnergy(*sizes, options.heads, options.products)
        self.values = Values(*sizes, options.heads, options.products)

    # ---- what it says of itself ---------------------------------------------------------------------------------

    @property
    def learned(self) -> bool:
        """Does it learn when to stop?"""
        return self.stop.learned

    @property
    def streaming(self) -> bool:
        """May it write before the source has ended?"""
        return self.stop.streaming

    def energies(self) -> Dict[str, Energy]:
        """Its energies by name: those whose keys the memory holds."""
        return {name: part for name, part in self._modules.items() if isinstance(part, Energy)}

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """A checkpoint of another mechanism: energies that both have are taken, one that it lacks stays as it is built.

        Called by fairseq.  So a model with soft attention is the start of all others: a head far below zero waits until
        the end, where MILk is soft attention.
        """
        parts = {part: module for part, module in self.named_children() if any(True for _ in module.parameters())}
        for key in [key for key in state_dict if key.startswith(f"{name}.")]:
            if key[len(name) + 1 :].partition(".")[0] not in parts:
                del state_dict[key]
        for part, module in parts.items():
            if not any(key.startswith(f"{name}.{part}.") for key in state_dict):
                logger.warning(f"the checkpoint is of another attention: {name}.{part} starts untrained")
                state_dict.update(module.state_dict(prefix=f"{name}.{part}."))

    # ---- energies -----------------------------------------------------------------------------------------------

    def queries(self, s: Tensor) -> Queries:
        """What target step i asks, once however often it is asked.  s: (B, query_dim), or (B, I, query_dim)."""
        return {name: energy.query(s) for name, energy in self.energies().items()}

    def weights(self, keys: Dict[str, Tensor]) -> Dict[str, Weights]:
        """What its energies have in common for all steps of a batch with these keys."""
        return {name: energy.weights(keys[name]) for name, energy in self.energies().items()}

    def e(self, queries: Queries, memory: Memory) -> Tensor:
        """The monotonic energy of every token of the memory.  (..., J), or (..., I, J)."""
        energy: Tensor = self.head(memory.keys["head"], queries["head"], memory.weights["head"])
        return energy

    def u(self, queries: Queries, memory: Memory) -> Optional[Tensor]:
        """The soft energy, None if the lookback has none."""
        if not self.lookback.soft:
            return None
        energy: Tensor = self.soft_energy(
            memory.keys["soft_energy"], queries["soft_energy"], memory.weights["soft_energy"]
        )
        return energy

    # ---- training -----------------------------------------------------------------------------------------------

    def remember(self, h: Tensor, lengths: Tensor) -> Memory:
        """Pack the source, once a batch.  h: (B, J, memory_dim), lengths: (B,)."""
        keys = {name: energy.project(h) for name, energy in self.energies().items()}
        if self.values is not None:
            h, lengths = self.values.project(h), lengths.unsqueeze(1)
        return Memory(h, keys, lengths, self.weights(keys))

    def begin(self, memory: Memory) -> AttentionState:
        """Before the first target step the head stands on the first source token: alpha_0 = (1, 0, ..., 0)."""
        alpha = torch.zeros_like(memory.barrier)
        alpha[..., 0] = 1.0
        return AttentionState(alpha if self.schedules is None else alpha.expand(-1, self.schedules, -1), 0)

    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool, alpha: Optional[Tensor] = None
    ) -> Tuple[AttentionOutput, AttentionState]:
        """The next target step over the whole source, or all of them: the context under the expected schedule.

        s: (B, query_dim), or (B, I, query_dim) where the queries of all steps are known; the output has the same
        dimension I.  hard: learned heads decide (e > 0, no noise) instead of giving probabilities; the result is then
        that of the incremental half.  alpha: the schedule, if another attention decides it.  Differentiable.
        """
        queries, steps = self.queries(s), None if s.dim() == 2 else s.size(1)
        seen = self.stop.seen(memory, state.i + 1, steps)
        if seen is not None:
            return self.attend(queries, seen), AttentionState(state.alpha, state.i + (steps or 1))
        if alpha is None:
            alpha = self.stop.expected(self.e(queries, memory), memory, state, hard)
        beta = self.lookback.expected(alpha, self.u(queries, memory), memory)
        after = alpha if steps is None else alpha[..., -1, :]
        out = AttentionOutput(self._join(context(beta, memory)), beta, alpha)
        return out, AttentionState(after, state.i + (steps or 1))

    def attend(self, queries: Queries, memory: Memory) -> AttentionOutput:
        """The context where the stop is known: the heads stand on the last token of the memory (see `seen_by`)."""
        beta = self.lookback.certain(self.u(queries, memory), memory)
        return AttentionOutput(self._join(context(beta, memory)), beta, memory.last)

    def _join(self, c: Tensor) -> Tensor:
        return c if self.values is None else self.values.join(c)

    # ---- decoding -----------------------------------------------------------------------------------------------

    def nothing_read(self, batch: int, like: Tensor, room: int = 16) -> Memory:
        """The memory before the first READ, with room for some tokens.  like: any (..., memory_dim) tensor."""
        lengths = torch.zeros(batch, dtype=torch.long, device=like.device)
        return self.remember(like.new_zeros(batch, room, like.size(-1)), lengths)

    def read(self, memory: Memory, h: Tensor, rows: Tensor) -> Memory:
        """One more source state for some sentences.  rows: (R,), which of them; h: (R, memory_dim), theirs.

        The buffers of `memory` are written in place and doubled when they are full, so that a token costs the same
        however many have been read.
        """
        if rows.numel() == 0:
            return memory
        columns = memory.read[rows]
        if int(columns.max()) >= memory.size:
            memory = memory.doubled()
        put(memory.h, rows, columns, h if self.values is None else self.values.project(h))
        for name, energy in self.energies().items():
            put(memory.keys[name], rows, columns, energy.project(h))
        lengths = memory.lengths.index_add(0, rows, torch.ones_like(memory.lengths[rows]))
        return Memory(memory.h, memory.keys, lengths, memory.weights)

    def begin_heads(self, memory: Memory) -> Heads:
        """Before the first target token every head looks at the first source token."""
        position = torch.zeros_like(memory.lengths)
        position = position if self.schedules is None else position.expand(-1, self.schedules)
        return Heads(position, torch.zeros_like(position, dtype=torch.bool))

    def seek(self, queries: Queries, memory: Memory, heads: Heads, i: int) -> Heads:
        """Read one more, or write?  Each head goes on along what has been read, to its first stop for target token i.

        One that finds none stands behind the last token and has not stopped: it has to read.
        """
        lengths = memory.lengths.expand_as(heads.position)
        ahead = int((lengths - heads.position).masked_fill(heads.stopped, 0).max())
        if ahead <= 0:
            return heads
        j = heads.position.unsqueeze(-1) + torch.arange(ahead, device=lengths.device)  # (..., ahead)
        e = self.head(at(memory.keys["head"], j), queries["head"], memory.weights["head"]) if self.learned else None
        found, first = (self.stop.stops(e, j + 1, i) & (j < lengths.unsqueeze(-1))).max(-1)
        position = torch.where(found, heads.position + first, lengths)
        return Heads(torch.where(heads.stopped, heads.position, position), heads.stopped | found)


def context(beta: Tensor, memory: Memory) -> Tensor:
    """c = sum_j beta_j h_j.  beta: (..., J), or (..., I, J) -> (..., D), or (..., I, D)."""
    beta = beta.to(memory.h.dtype)
    if beta.dim() == memory.h.dim():
        return torch.matmul(beta, memory.h)
    return torch.matmul(beta.unsqueeze(-2), memory.h).squeeze(-2)


def at(keys: Tensor, j: Tensor) -> Tensor:
    """keys[..., j, :], clipped to what there is.  (..., J, A), (..., n) -> (..., n, A)."""
    index = j.clamp(max=keys.size(-2) - 1).unsqueeze(-1)
    return keys.gather(-2, index.expand(*j.shape, keys.size(-1)))


def put(buffer: Tensor, rows: Tensor, columns: Tensor, x: Tensor) -> None:
    """buffer[row, ..., column] = x for each row.  (B, J, A), or (B, H, J, d); x: (R, A), or (R, H, d)."""
    if buffer.dim() == 3:
        buffer[rows, columns] = x
    else:
        buffer[rows, :, columns] = x
