"""Confidence intervals and paired tests by bootstrap over sentences (Koehn 2004), for BLEU and for means.

A corpus score is a function of sums over sentences, so a resample is a vector of sentence counts and a block of
resamples is one matrix product.
"""

from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from sacrebleu.metrics.base import Metric

RESAMPLES, SEED = 1000, 12345  # defaults of every interval
BLOCK = 1000  # resamples computed at a time, which bounds the memory


class Interval(NamedTuple):
    """A score and its 95 % confidence interval."""

    score: float
    low: float
    high: float


class Difference(NamedTuple):
    """Second minus first, its 95 % confidence interval, and the two-sided p-value of a difference of zero."""

    score: float
    low: float
    high: float
    p: float


class Sample(NamedTuple):
    """The statistics of each sentence from which a corpus score is computed.

    statistics: (sentences, n).  result: maps their sum to the score, a number or a score object of sacreBLEU.
    """

    statistics: np.ndarray
    result: Callable[[np.ndarray], Any]

    def score(self, total: np.ndarray) -> float:
        result = self.result(total)
        return float(getattr(result, "score", result))

    def corpus_score(self) -> float:
        return self.score(self.statistics.sum(0))


def mean_sample(values: Sequence[Optional[float]]) -> Sample:
    """The mean of the values that are not None."""
    statistics = np.array([(0.0, 0.0) if value is None else (value, 1.0) for value in values]).reshape(-1, 2)
    return Sample(statistics, lambda total: float(total[0] / total[1]) if total[1] else float("nan"))


def corpus_sample(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Sample:
    """BLEU or chrF of a corpus with one reference; the statistics are the n-gram counts and the lengths.

    The two private methods are those that sacreBLEU's own significance tests call; every metric has them.
    """
    statistics = np.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)
    return Sample(statistics, lambda total: metric._compute_score_from_stats([round(n) for n in total.tolist()]))


def interval(sample: Sample, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """Percentile interval of the corpus score."""
    (scores,) = resampled([sample], resamples, seed)
    return Interval(sample.corpus_score(), *central(scores))


def difference(first: Sample, second: Sample, resamples: int, seed: int) -> Difference:
    """Second minus first by paired bootstrap: both are resampled with the same sentences.

    p = P(|d* - d| >= |d|) for resampled differences d* around the observed d (the shift method, Riezler and Maxwell
    2005).  The observed difference is counted too, so that p is never 0.
    """
    before, after = resampled([first, second], resamples, seed)
    differences = after - before
    observed = second.corpus_score() - first.corpus_score()
    extreme = int((np.abs(differences - observed) >= abs(observed)).sum())
    return Difference(observed, *central(differences), p=(extreme + 1) / (resamples + 1))


def resampled(samples: Sequence[Sample], resamples: int, seed: int) -> np.ndarray:
    """The scores of each sample under the same resamples.  (samples, resamples)."""
    rng, sentences = np.random.default_rng(seed), len(samples[0].statistics)
    blocks = []
    for start in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - start)
        counts = rng.multinomial(sentences, np.full(sentences, 1.0 / sentences), size=size).astype(np.float64)
        blocks.append([[sample.score(total) for total in counts @ sample.statistics] for sample in samples])
    return np.concatenate(blocks, axis=1)


def central(scores: np.ndarray) -> Tuple[float, float]:
    """The bounds of the central 95 %.  Resamples without a measurable sentence (nan) are left out."""
    low, high = np.nanpercentile(scores, [2.5, 97.5])
    return float(low), float(high)
