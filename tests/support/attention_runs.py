"""Both halves of an attention mechanism run over whole sentences, for every stop with every lookback."""

from itertools import product
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple, Type

import torch
from torch import Tensor

from fairseq_milk.attention import (
    ATTENTIONS,
    AttentionOptions,
    Bernoulli,
    Everything,
    Heads,
    Here,
    Lookback,
    Memory,
    Pair,
    Queries,
    ReadAll,
    SimultaneousAttention,
    Stop,
    WaitK,
    Window,
    build_pair,
)
from fairseq_milk.attention.energy import MonotonicEnergy
from fairseq_milk.functional import expected_delays
from tests.support.sixth_mechanism import SIXTH

STOPS: Tuple[Type[Stop], ...] = (ReadAll, WaitK, Bernoulli)
LOOKBACKS: Tuple[Type[Lookback], ...] = (Here, Window, Everything)
PAIRS: Dict[str, Pair] = {f"{s.__name__} x {b.__name__}": (s, b) for s, b in product(STOPS, LOOKBACKS)}
PAIRS.update(SIXTH)

OPTIONS = AttentionOptions(query_dim=3, memory_dim=4, energy_dim=5, chunk_size=2, k=2)
RAGGED = (7, 3, 1, 5, 7, 6)  # the longest neither first nor last alone, one sentence of EOS alone


class Run(NamedTuple):
    """What a mechanism did over I target steps."""

    c: Tensor  # (B, I, D)
    beta: Tensor  # (B, I, J)
    alpha: Tensor  # (B, I, J)

    @property
    def g(self) -> Tensor:
        return expected_delays(self.alpha)


def build(
    name: str, options: AttentionOptions = OPTIONS, scale: float = 4.0, bias: float = 0.0
) -> SimultaneousAttention:
    """The mechanism in float64 and evaluation mode; the energies are scaled so that not every head waits."""
    attention = build_pair(PAIRS.get(name) or ATTENTIONS[name], options).double().eval()
    for head in learned_heads(attention):
        head.g.data.fill_(scale)
        head.r.data.fill_(bias)
    return attention


def learned_heads(attention: SimultaneousAttention) -> List[MonotonicEnergy]:
    return [attention.head] if attention.learned else []


def set_threshold(attention: SimultaneousAttention, threshold: float) -> None:
    stop: Any = attention.stop
    if "threshold" in stop.knobs:
        stop.threshold = threshold


def batch(lengths: Iterable[int] = RAGGED, tgt_size: int = 4) -> Tuple[Tensor, Tensor, Tensor]:
    """Queries s (B, I, D), states h (B, J, D) with garbage for padding, lengths (B,); float64."""
    src_lengths = torch.tensor(list(lengths))
    s = torch.randn(len(src_lengths), tgt_size, OPTIONS.query_dim, dtype=torch.float64)
    h = torch.randn(len(src_lengths), int(src_lengths.max()), OPTIONS.memory_dim, dtype=torch.float64)
    for h_b, n in zip(h, src_lengths):
        h_b[n:] = 1000 * torch.randn_like(h_b[n:])
    return s, h, src_lengths


def expected(attention: SimultaneousAttention, s: Tensor, h: Tensor, lengths: Tensor, hard: bool = False) -> Run:
    """The expected half over the whole source."""
    memory, steps = attention.remember(h, lengths), []
    state = attention.begin(memory)
    for s_i in s.unbind(1):
        out, state = attention.expected(s_i, memory, state, hard)
        steps.append(out)
    return Run(*(torch.stack(rows, dim=1) for rows in zip(*steps)))


def incremental(attention: SimultaneousAttention, s: Tensor, h: Tensor, lengths: Tensor) -> Run:
    """The incremental half: READ until it wants to WRITE or the source has ended.  It is given only the states read."""
    everybody, size = torch.arange(len(h)), h.size(1)
    memory = attention.read(attention.nothing_read(len(h), h, room=1), h[:, 0], everybody)
    heads, steps = attention.begin_heads(memory), []
    for i, s_i in enumerate(s.unbind(1), start=1):
        queries = attention.queries(s_i)
        while True:
            heads = attention.seek(queries, memory, heads, i)
            rows = everybody[~heads.ready & (memory.lengths < lengths)]
            if len(rows) == 0:
                break
            memory = attention.read(memory, h[rows, memory.lengths[rows]], rows)
            heads = heads.after_read(rows, memory.lengths)
        out = attention.attend(queries, memory.seen_by(heads))
        heads = heads.after_write(memory.lengths)
        assert (expected_delays(out.alpha) == memory.lengths).all(), "a head that wrote stands on the last token read"
        steps.append((out.c, fit(out.beta, size), fit(out.alpha, size)))
    return Run(*(torch.stack(rows, dim=1) for rows in zip(*steps)))


def fit(row: Tensor, size: int) -> Tensor:
    """(B, room) -> (B, size); asserts that only zeros are cut off."""
    assert not row[:, size:].any()
    return torch.nn.functional.pad(row, (0, size - row.size(1)))


def writes(attention: SimultaneousAttention, queries: Queries, memory: Memory, i: int) -> Tensor:
    """Whether a head on the token read last stops there for target token i.  (B,) bool."""
    heads = attention.begin_heads(memory)
    return attention.seek(queries, memory, Heads(memory.lengths - 1, heads.stopped), i).stopped


def prefix(attention: SimultaneousAttention, h: Tensor, tokens: int) -> Memory:
    """The memory of one sentence after that many READs.  h: (J, D)."""
    memory = attention.nothing_read(1, h, room=1)
    for h_j in h[:tokens]:
        memory = attention.read(memory, h_j.unsqueeze(0), torch.tensor([0]))
    return memory


def same(got: Run, want: Run, atol: float = 1e-9) -> None:
    for field, a, b in zip(Run._fields, got, want):
        torch.testing.assert_close(a, b, rtol=0, atol=atol, msg=(field + ": {}").format)
