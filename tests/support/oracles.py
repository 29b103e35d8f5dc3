"""The equations of the paper as loops in float64 that share no code with `fairseq_milk`.

Two kinds of oracle.  The recurrences (sections 3 and 4 of the paper, as printed) run over a batch, so that they reach
J = 1000 and 50 target steps, and are differentiable by autograd.  The enumeration goes back to the definition: it
draws every table of Bernoulli decisions z_ij of one sentence, walks the head over it and adds up what happened.

Positions count from 1 as in the paper: t_i = 1 is the first source token and t_i = None a head that ran off the end.
"""

import itertools
from fractions import Fraction
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

Stops = Tuple[Optional[int], ...]


# --- the recurrences, batched over sentences ---------------------------------------------------------------------


def first_alpha(batch_size: int, src_size: int) -> Tensor:
    """alpha_0: the head stands on the first token.  (B, J)."""
    alpha = torch.zeros(batch_size, src_size, dtype=torch.float64)
    alpha[:, 0] = 1.0
    return alpha


def alignment_step(
    e: Tensor, alpha_prev: Tensor, src_lengths: Optional[Sequence[int]] = None, preserve_mass: bool = True
) -> Tensor:
    """alpha_ij = p_ij ((1 - p_i,j-1) q_i,j-1 + alpha_i-1,j), one j after the other.  (B, J) -> (B, J).

    q_ij = alpha_ij / p_ij.  p = 1 at the sentence's last token if mass is preserved, p = 0 beyond it.
    """
    batch_size, src_size = e.shape
    lengths = [src_size] * batch_size if src_lengths is None else [int(n) for n in src_lengths]
    is_last, is_padding = torch.zeros(batch_size, src_size).bool(), torch.zeros(batch_size, src_size).bool()
    for b, n in enumerate(lengths):
        is_last[b, n - 1] = preserve_mass
        is_padding[b, n:] = True
    p = torch.sigmoid(e.double())
    p = torch.where(is_last, torch.ones_like(p), torch.where(is_padding, torch.zeros_like(p), p))
    q, alpha = torch.zeros(batch_size, dtype=torch.float64), []
    stay = [torch.zeros(batch_size, dtype=torch.float64)] + list((1.0 - p).unbind(1))  # 1 - p_{j-1}
    for j, (p_j, prev_j) in enumerate(zip(p.unbind(1), alpha_prev.double().unbind(1))):
        q = stay[j] * q + prev_j
        alpha.append(p_j * q)
    return torch.stack(alpha, dim=1)


def alignment(
    e: Tensor,
    src_lengths: Optional[Sequence[int]] = None,
    preserve_mass: bool = True,
    alpha_0: Optional[Tensor] = None,
) -> Tensor:
    """alpha of all target steps, each fed with the one before.  e: (B, I, J) -> (B, I, J)."""
    alpha = first_alpha(e.size(0), e.size(2)) if alpha_0 is None else alpha_0
    rows = []
    for e_i in e.unbind(1):
        alpha = alignment_step(e_i, alpha, src_lengths, preserve_mass)
        rows.append(alpha)
    return torch.stack(rows, dim=1)


def lookback(
    alpha: Tensor, u: Tensor, chunk_size: Optional[int] = None, src_lengths: Optional[Sequence[int]] = None
) -> Tensor:
    """beta_ij = sum_k alpha_ik [softmax of u over what a head that stops at k sees]_j.  (B, J) -> (B, J).

    chunk_size: the tokens that the soft head sees, the last one included; None for all (MILk).
    """
    batch_size, src_size = u.shape
    lengths = torch.tensor([src_size] * batch_size if src_lengths is None else [int(n) for n in src_lengths])
    alpha, u = alpha.double(), u.double()
    beta = torch.zeros(batch_size, src_size, dtype=torch.float64)
    for k in range(src_size):
        start = 0 if chunk_size is None else max(0, k - chunk_size + 1)
        seen = u[:, start : k + 1]
        weights = torch.exp(seen - seen.max(dim=1, keepdim=True).values)
        weights = weights / weights.sum(dim=1, keepdim=True)
        part = alpha[:, k : k + 1] * (k < lengths).unsqueeze(1) * weights
        beta = beta + torch.nn.functional.pad(part, (start, src_size - k - 1))
    return beta


def context(beta: Tensor, h: Tensor) -> Tensor:
    """c_i = sum_j beta_ij h_j.  (B, J), (B, J, D) -> (B, D)."""
    c = torch.zeros(h.size(0), h.size(2), dtype=torch.float64)
    for j in range(h.size(1)):
        c = c + beta[:, j : j + 1].double() * h[:, j].double()
    return c


def delays(alpha: Tensor) -> Tensor:
    """g_i = sum_j j alpha_ij.  (B, I, J) -> (B, I)."""
    g = torch.zeros(alpha.shape[:-1], dtype=torch.float64)
    for j, alpha_j in enumerate(alpha.double().unbind(-1), start=1):
        g = g + j * alpha_j
    return g


def additive_energy(keys: Tensor, query: Tensor, v: Tensor) -> Tensor:
    """energy_j = sum_a v_a tanh(k_ja + q_a).  (B, J, A), (B, A), (A,) -> (B, J)."""
    energy = torch.zeros(keys.shape[:2], dtype=torch.float64)
    for a in range(v.numel()):
        energy = energy + v[a].double() * torch.tanh(keys[:, :, a].double() + query[:, a : a + 1].double())
    return energy


# --- latency of one sentence: works on ints, floats, Fractions and scalar tensors alike ---------------------------


def average_proportion(g: Sequence[Any], src_length: Any) -> Any:
    """AP = 1 / (|x| |y|) sum_i g_i."""
    total: Any = 0
    for g_i in g:
        total = total + g_i
    return total / (src_length * len(g))


def average_lagging(g: Sequence[Any], src_length: Any) -> Any:
    """AL = 1 / tau sum_{i <= tau} g_i - (i-1) / gamma with tau the first i with g_i = |x| (|y| if there is none)."""
    tau = len(g)
    total: Any = 0
    for i, g_i in enumerate(g, start=1):
        if g_i == src_length:
            tau = i
            break
    for i in range(1, tau + 1):
        total = total + (g[i - 1] - (i - 1) * src_length / len(g))
    return total / tau


def differentiable_average_lagging(g: Sequence[Any], src_length: Any) -> Any:
    """DAL = 1 / |y| sum_i g'_i - (i-1) / gamma,  g'_1 = g_1,  g'_i = max(g_i, g'_{i-1} + 1 / gamma)."""
    total: Any = 0
    wrapped: Any = None
    for i, g_i in enumerate(g, start=1):
        wrapped = g_i if wrapped is None else max(g_i, wrapped + src_length / len(g))
        total = total + (wrapped - (i - 1) * src_length / len(g))
    return total / len(g)


def wait_k_delays(k: int, src_length: int, tgt_length: int, rate: str = "1") -> List[int]:
    """g_i of wait-k: k tokens are read first, then one more whenever the target has grown by r ("1.1" or "11/10")."""
    g = []
    for i in range(1, tgt_length + 1):
        owed, reads = Fraction(i - 1), 0
        while owed >= Fraction(rate):
            owed, reads = owed - Fraction(rate), reads + 1
        g.append(min(k + reads, src_length))
    return g


# --- enumeration: one sentence, every table of decisions ----------------------------------------------------------


def enumerate_stops(p: Any, preserve_mass: bool = True) -> Iterator[Tuple[Any, Stops]]:
    """Every table z in {0, 1}^(I x J) with its probability and the stops (t_1, .., t_I) that the head makes on it.

    p: (I, J), a tensor or nested lists.  2^(I J) tables; the same stops come up many times (see `stop_distribution`).
    preserve_mass: p_{i,|x|} = 1, so that z = 1 in the last column of every table.
    """
    rows = [list(row) for row in p]
    tgt_size, src_size = len(rows), len(rows[0])
    if preserve_mass:
        rows = [row[:-1] + [1.0] for row in rows]
    last_column = (1,) if preserve_mass else (0, 1)
    decisions = ([(0, 1)] * (src_size - 1) + [last_column]) * tgt_size
    for table in itertools.product(*decisions):
        z = [table[i * src_size : (i + 1) * src_size] for i in range(tgt_size)]
        probability: Any = 1.0
        for i in range(tgt_size):
            for j in range(src_size):
                probability = probability * (rows[i][j] if z[i][j] else 1.0 - rows[i][j])
        yield probability, walk(z)


def walk(z: Sequence[Sequence[int]]) -> Stops:
    """t_i: the first j >= t_{i-1} with z_ij = 1, from t_0 = 1; None once the head has run off the end."""
    stops: List[Optional[int]] = []
    position: Optional[int] = 1
    for row in z:
        if position is not None:
            position = next((j for j in range(position, len(row) + 1) if row[j - 1]), None)
        stops.append(position)
    return tuple(stops)


def stop_distribution(p: Any, preserve_mass: bool = True) -> Dict[Stops, Any]:
    """P(t_1, .., t_I) by enumeration."""
    distribution: Dict[Stops, Any] = {}
    for probability, stops in enumerate_stops(p, preserve_mass):
        distribution[stops] = distribution.get(stops, 0.0) + probability
    return distribution


def weights_at_stop(u: Tensor, stop: Optional[int], chunk_size: Optional[int] = None) -> Tensor:
    """Softmax of u over what a head that has stopped sees; nothing if it ran off the end.  (J,) -> (J,)."""
    weights = torch.zeros(u.numel(), dtype=torch.float64)
    if stop is not None:
        start = 0 if chunk_size is None else max(0, stop - chunk_size)
        weights[start:stop] = torch.softmax(u[start:stop].double(), dim=0)
    return weights


def enumerated_alpha(p: Any, preserve_mass: bool = True) -> Tensor:
    """alpha_ij = P(t_i = j).  (I, J) -> (I, J)."""
    alpha = torch.zeros(len(p), len(p[0]), dtype=torch.float64)
    for stops, probability in stop_distribution(p, preserve_mass).items():
        for i, stop in enumerate(stops):
            if stop is not None:
                alpha[i, stop - 1] += probability
    return alpha


def enumerated_beta(p: Any, u: Tensor, chunk_size: Optional[int] = None, preserve_mass: bool = True) -> Tensor:
    """beta_i = E[the soft head's weights at t_i].  p, u: (I, J) -> (I, J)."""
    beta = torch.zeros(u.shape, dtype=torch.float64)
    for stops, probability in stop_distribution(p, preserve_mass).items():
        for i, stop in enumerate(stops):
            beta[i] += probability * weights_at_stop(u[i], stop, chunk_size)
    return beta


def enumerated_context(
    p: Any, u: Tensor, h: Tensor, chunk_size: Optional[int] = None, preserve_mass: bool = True
) -> Tensor:
    """c_i = E[context of the hard mechanism], 0 for a head that ran off the end.  (I, J), (I, J), (J, D) -> (I, D)."""
    c = torch.zeros(u.size(0), h.size(1), dtype=torch.float64)
    for stops, probability in stop_distribution(p, preserve_mass).items():
        for i, stop in enumerate(stops):
            c[i] += probability * (weights_at_stop(u[i], stop, chunk_size).unsqueeze(1) * h.double()).sum(0)
    return c


def enumerated_delays(p: Any) -> Tensor:
    """g_i = E[t_i] (mass preserved, so that there is always a stop).  (I, J) -> (I,)."""
    g = torch.zeros(len(p), dtype=torch.float64)
    for stops, probability in stop_distribution(p).items():
        for i, stop in enumerate(stops):
            assert stop is not None
            g[i] += stop * probability
    return g
