"""The attention class: a stop, a lookback and their energies.

The expected half, for training, sees the whole source; the incremental half, for decoding, sees only what has been
read.  Tensors may have a head axis after the batch: a token is written when every head has stopped.
"""

import logging
from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from .dot_product import DotProductEnergy, MonotonicDotProductEnergy, Values
from .energy import AdditiveEnergy, Energy, MonotonicEnergy, Weights
from .lookbacks import Lookback
from .memory import Heads, Memory
from .options import AttentionOptions
from .stops import AttentionState, Stop

logger = logging.getLogger(__name__)

Queries = Dict[str, Tensor]  # (B, energy_dim), or (B, H, d): W_q s for each energy of the attention


class AttentionOutput(NamedTuple):
    """The output for one target step; for several, with a dimension I before the last."""

    c: Tensor  # (B, memory_dim), context; with heads (B, query_dim)
    beta: Tensor  # (B, J), attention; with heads (B, H or 1, J)
    alpha: Tensor  # (B, J), distribution of the stop position; with heads (B, schedules or 1, J)


class SimultaneousAttention(nn.Module):
    """`head` is the energy e of a learned stop, `soft_energy` the energy u of a lookback; each only if needed.

    decides: False for an attention that follows the schedule of another one and therefore has no energy e.
    """

    head: Any  # Energies, additive or dot products
    soft_energy: Any

    def __init__(self, stop: Stop, lookback: Lookback, options: AttentionOptions, decides: bool = True) -> None:
        super().__init__()
        self.stop, self.lookback, self.decides = stop, lookback, decides
        self.schedules: Optional[int] = None  # number of heads with their own schedule; None: no head axis
        self.values: Optional[Values] = None
        if options.heads is None:
            sizes = options.query_dim, options.memory_dim, options.energy_dim
            if stop.learned:
                paces = options.head_pace, options.projection_pace
                self.head = MonotonicEnergy(*sizes, options.energy_bias, *paces, options.products)
            if lookback.soft:
                self.soft_energy = AdditiveEnergy(*sizes, options.products)
            return
        self.schedules = options.schedule_heads if stop.learned else 1
        if stop.learned and decides:
            self.head = MonotonicDotProductEnergy(options, options.schedule_heads)
        if lookback.soft:
            self.soft_energy = DotProductEnergy(options, options.heads)
        self.values = Values(options, options.heads)

    # ---- properties ----------------------------------------------------------------------------------------------

    @property
    def learned(self) -> bool:
        """Whether the stop is learned."""
        return self.stop.learned

    @property
    def streaming(self) -> bool:
        """Whether it may write before the source has ended."""
        return self.stop.streaming

    def energies(self) -> Dict[str, Energy]:
        """The energies by name; the memory holds their keys."""
        return {name: part for name, part in self._modules.items() if isinstance(part, Energy)}

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Adapt the checkpoint of another mechanism: energies that both have are loaded, missing ones stay untrained.

        Called by fairseq.  A model with soft attention can thus be the start of all others: with a strongly negative
        bias the head waits until the end of the source, and MILk equals soft attention.  The projections of the head
        start as those of the soft energy, which are already trained.
        """
        parts = {part: module for part, module in self.named_children() if any(True for _ in module.parameters())}
        projections = {key: state_dict.get(f"{name}.soft_energy.{key}") for key in ("w_s", "w_q", "v")}
        for key in [key for key in state_dict if key.startswith(f"{name}.")]:
            if key[len(name) + 1 :].partition(".")[0] not in parts:
                del state_dict[key]
        for part, module in parts.items():
            if not any(key.startswith(f"{name}.{part}.") for key in state_dict):
                logger.warning(f"the checkpoint is of another attention: {name}.{part} starts untrained")
                own = module.state_dict()
                if part == "head":
                    own.update(self._known(own, projections))
                state_dict.update({f"{name}.{part}.{key}": x for key, x in own.items()})

    def _known(self, own: Dict[str, Tensor], projections: Dict[str, Optional[Tensor]]) -> Dict[str, Tensor]:
        """The projections of a soft energy divided by `projection_pace`, as the head stores them."""
        return {
            key: learned / self.head.projection_pace
            for key, learned in projections.items()
            if learned is not None and key in own and learned.shape == own[key].shape
        }

    # ---- energies -----------------------------------------------------------------------------------------------

    def queries(self, s: Tensor) -> Queries:
        """The queries of a target step, computed once.  s: (B, query_dim), or (B, I, query_dim)."""
        return {name: energy.query(s) for name, energy in self.energies().items()}

    def weights(self, keys: Dict[str, Tensor]) -> Dict[str, Weights]:
        """The weights of the energies, the same for all steps of a batch with these keys."""
        return {name: energy.weights(keys[name]) for name, energy in self.energies().items()}

    def e(self, queries: Queries, memory: Memory) -> Tensor:
        """The monotonic energy of every token in the memory.  (..., J), or (..., I, J)."""
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
        """Project the source, once per batch.  h: (B, J, memory_dim), lengths: (B,)."""
        keys = {name: energy.project(h) for name, energy in self.energies().items()}
        return self.packed(h if self.values is None else self.values.project(h), keys, lengths)

    def packed(self, values: Tensor, keys: Dict[str, Tensor], lengths: Tensor) -> Memory:
        """The memory of a source that was projected before."""
        return Memory(values, keys, lengths if self.values is None else lengths.unsqueeze(1), self.weights(keys))

    def begin(self, memory: Memory) -> AttentionState:
        """The state before the first target step: the head is at the first source token, alpha_0 = (1, 0, ..., 0)."""
        alpha = torch.zeros_like(memory.barrier)
        alpha[..., 0] = 1.0
        return AttentionState(alpha if self.schedules is None else alpha.expand(-1, self.schedules, -1), 0)

    def expected(
        self, s: Tensor, memory: Memory, state: AttentionState, hard: bool, alpha: Optional[Tensor] = None
    ) -> Tuple[AttentionOutput, AttentionState]:
        """The context of the next target step, or of all steps, under the expected schedule over the whole source.

        s: (B, query_dim), or (B, I, query_dim) if the queries of all steps are known; the output has the same
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
        """The context for known stops: the heads are at the last token of the memory (see `seen_by`)."""
        return AttentionOutput(*self._see(queries, memory), memory.last)

    def look_back(self, queries: Queries, memory: Memory, end: int) -> Tuple[Tensor, Tensor]:
        """`attend` for sentences that all stop on token number `end`; what they see is cut out instead of masked.

        -> c: (B, memory_dim) and beta: (B, end); with heads as `AttentionOutput`.
        """
        c, beta = self._see(queries, memory.cut(end, self.lookback.reach))
        return c, F.pad(beta, (end - beta.size(-1), 0)) if beta.size(-1) < end else beta

    def _see(self, queries: Queries, memory: Memory) -> Tuple[Tensor, Tensor]:
        """c and beta for known stops."""
        beta = self.lookback.certain(self.u(queries, memory), memory)
        return self._join(context(beta, memory)), beta

    def _join(self, c: Tensor) -> Tensor:
        return c if self.values is None else self.values.join(c)

    # ---- decoding -----------------------------------------------------------------------------------------------

    def nothing_read(self, batch: int, like: Tensor, room: int = 16) -> Memory:
        """An empty memory, with room for some tokens.  like: any (..., memory_dim) tensor."""
        lengths = torch.zeros(batch, dtype=torch.long, device=like.device)
        return self.remember(like.new_zeros(batch, room, like.size(-1)), lengths)

    def read(self, memory: Memory, h: Tensor, rows: Tensor) -> Memory:
        """Append one source state to some sentences.  rows: (R,), their indices; h: (R, memory_dim).

        The buffers of `memory` are written in place and doubled when they are full, so that the cost of a token does
        not depend on how many have been read.
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
        """The state before the first target token: every head looks at the first source token."""
        position = torch.zeros_like(memory.lengths)
        position = position if self.schedules is None else position.expand(-1, self.schedules)
        return Heads(position, torch.zeros_like(position, dtype=torch.bool))

    def seek(self, queries: Queries, memory: Memory, heads: Heads, i: int) -> Heads:
        """Decide READ or WRITE: move each head along what has been read to its first stop for target token i.

        A head without a stop is placed after the last token and has to READ.
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

    def seek_one(self, queries: Queries, memory: Memory, position: int, i: int) -> Tuple[int, bool]:
        """`seek` for one sentence and one head, which has not stopped and stands at `position`."""
        length = int(memory.lengths)
        if position >= length:
            return position, False
        e = None
        if self.learned:
            e = self.head(memory.keys["head"][:, position:length], queries["head"], memory.weights["head"])
        read = torch.arange(position + 1, length + 1, device=memory.h.device)
        stops = self.stop.stops(e, read, i).flatten().tolist()
        return (position + stops.index(True), True) if True in stops else (length, False)


def context(beta: Tensor, memory: Memory) -> Tensor:
    """c = sum_j beta_j h_j.  beta: (..., J), or (..., I, J) -> (..., D), or (..., I, D)."""
    beta = beta.to(memory.h.dtype)
    if beta.dim() == memory.h.dim():
        return torch.matmul(beta, memory.h)
    return torch.matmul(beta.unsqueeze(-2), memory.h).squeeze(-2)


def at(keys: Tensor, j: Tensor) -> Tensor:
    """keys[..., j, :], with j clipped to the last key.  (..., J, A), (..., n) -> (..., n, A)."""
    index = j.clamp(max=keys.size(-2) - 1).unsqueeze(-1)
    return keys.gather(-2, index.expand(*j.shape, keys.size(-1)))


def put(buffer: Tensor, rows: Tensor, columns: Tensor, x: Tensor) -> None:
    """buffer[row, ..., column] = x for each row.  (B, J, A), or (B, H, J, d); x: (R, A), or (R, H, d)."""
    if buffer.dim() == 3:
        buffer[rows, columns] = x
    else:
        buffer[rows, :, columns] = x
