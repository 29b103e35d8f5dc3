"""Aligns the sentences of two texts by length (Gale and Church 1993) and shared words.

A bead is a group of sentences on each side that translate each other: 1-1, 2-1, 1-2, 2-2, 1-0 or 0-1.  Its cost is
-log P(kind) - log P(lengths), as in the paper, minus a reward for words that both sides share (numbers, names); the
cheapest sequence of beads is found by dynamic programming.
"""

import math
import re
from typing import Dict, List, NamedTuple, Sequence, Set, Tuple

KINDS: Dict[Tuple[int, int], float] = {  # probabilities, after Gale and Church
    (1, 1): 0.89,
    (1, 0): 0.005,
    (0, 1): 0.005,
    (2, 1): 0.0445,
    (1, 2): 0.0445,
    (2, 2): 0.011,
}
VARIANCE = 6.8  # variance of the difference in length, per character
REWARD = 2.0  # nats per shared word
MOST_REWARD = 8.0  # nats per bead
SHARED = re.compile(r"\d+|[^\W\d_]{4,}")
PREFIX = 5  # words are compared by this many letters: names, numbers, Delegation with delegates


class Bead(NamedTuple):
    source: Tuple[int, ...]
    target: Tuple[int, ...]


def length_cost(source: float, target: float, ratio: float) -> float:
    """-log of the probability of a difference in length at least as large.  ratio: characters of target per source."""
    mean = (source + target / ratio) / 2
    if mean == 0:
        return 0.0
    deviation = abs(target - source * ratio) / math.sqrt(VARIANCE * mean)
    return -math.log(max(math.erfc(deviation / math.sqrt(2)), 1e-100))


def shared_words(sentence: str) -> Set[str]:
    """The numbers and the beginnings of longer words, in lower case."""
    return {word.lower()[:PREFIX] for word in SHARED.findall(sentence)}


def align(source: Sequence[str], target: Sequence[str], ratio: float) -> List[Bead]:
    """The cheapest beads, in order; every sentence is in exactly one.  ratio: characters of target per source."""
    lengths = [len(s) for s in source], [len(t) for t in target]
    words = [shared_words(s) for s in source], [shared_words(t) for t in target]
    best: Dict[Tuple[int, int], Tuple[float, Tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(source) + 1):
        for j in range(len(target) + 1):
            candidates = []
            for (m, n), share in KINDS.items():
                if (i - m, j - n) in best:
                    cost = length_cost(sum(lengths[0][i - m : i]), sum(lengths[1][j - n : j]), ratio) - math.log(share)
                    common = set().union(*words[0][i - m : i]) & set().union(*words[1][j - n : j])
                    reward = min(REWARD * len(common), MOST_REWARD)
                    candidates.append((best[i - m, j - n][0] + cost - reward, (m, n)))
            if candidates:
                best[i, j] = min(candidates)
    return _trace(best, len(source), len(target))


def _trace(best: Dict[Tuple[int, int], Tuple[float, Tuple[int, int]]], i: int, j: int) -> List[Bead]:
    beads: List[Bead] = []
    while i or j:
        m, n = best[i, j][1]
        beads.append(Bead(tuple(range(i - m, i)), tuple(range(j - n, j))))
        i, j = i - m, j - n
    return beads[::-1]
