"""Confidence intervals and paired tests by bootstrap over sentences (Koehn 2004), for BLEU and for means.

A corpus score is a function of sums over sentences, so a resample is a vector of sentence counts and a block of
resamples is one matrix product.
"""

from typing import Callable, List, NamedTuple, Optional, Sequence

import numpy as np
import sacrebleu

Score = Callable[[np.ndarray], float]  # from the summed statistics of a corpus
RESAMPLES, SEED = 1000, 12345  # of every interval that is not asked for with others
BLOCK = 1000  # resamples at a time: the memory does not grow with their number


class Interval(NamedTuple):
    """A score and the interval that holds 95 % of its resamples."""

    score: float
    low: float
    high: float


class Difference(NamedTuple):
    """Second minus first, with its 95 % interval and the two-sided p-value of there being none."""

    score: float
    low: float
    high: float
    p: float


class Sample(NamedTuple):
    """What a corpus score needs of each sentence.  statistics: (sentences, n)."""

    statistics: np.ndarray
    score: Score

    def corpus_score(self) -> float:
        return self.score(self.statistics.sum(0))


def mean_sample(values: Sequence[Optional[float]]) -> Sample:
    """The mean of the values that are not None."""
    statistics = np.array([(0.0, 0.0) if value is None else (value, 1.0) for value in values]).reshape(-1, 2)
    return Sample(statistics, lambda total: float(total[0] / total[1]) if total[1] else float("nan"))


def bleu_sample(bleu: sacrebleu.BLEU, hypotheses: Sequence[str], references: Sequence[str]) -> Sample:
    """BLEU of a corpus with one reference; the statistics are the n-gram counts and the lengths."""
    scores = [bleu.corpus_score([hypothesis], [[reference]]) for hypothesis, reference in zip(hypotheses, references)]
    statistics = np.array([[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in scores], dtype=np.float64)

    def score(total: np.ndarray) -> float:
        counts: List[int] = [round(value) for value in total.tolist()]
        n = bleu.max_ngram_order
        return bleu.compute_bleu(
            counts[2 : 2 + n], counts[2 + n :], counts[0], counts[1], bleu.smooth_method, bleu.smooth_value,
            bleu.effective_order, n,
        ).score  # fmt: skip

    return Sample(statistics, score)


def interval(sample: Sample, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """Percentile interval of the corpus score."""
    (scores,) = resampled([sample], resamples, seed)
    return Interval(sample.corpus_score(), *central(scores))


def difference(first: Sample, second: Sample, resamples: int, seed: int) -> Difference:
    """Paired: both are resampled with the same sentences.

    p = P(|d* - d| >= |d|) for resampled differences d* around the observed d (the shift method, Riezler and Maxwell
    2005), counted with the observed one, so it is never 0.
    """
    before, after = resampled([first, second], resamples, seed)
    differences = after - before
    observed = second.corpus_score() - first.corpus_score()
    extreme = int((np.abs(differences - observed) >= abs(observed)).sum())
    low, high = central(differences)
    return Difference(observed, low, high, p=(extreme + 1) / (resamples + 1))


def resampled(samples: Sequence[Sample], resamples: int, seed: int) -> np.ndarray:
    """The scores of each sample under the same resamples.  (samples, resamples)."""
    rng, sentences = np.random.default_rng(seed), len(samples[0].statistics)
    blocks = []
    for start in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - start)
        counts = rng.multinomial(sentences, np.full(sentences, 1.0 / sentences), size=size).astype(np.float64)
        blocks.append([[sample.score(total) for total in counts @ sample.statistics] for sample in samples])
    return np.concatenate(blocks, axis=1)


def central(scores: np.ndarray) -> List[float]:
    """The bounds of the central 95 %.  Resamples without any measurable sentence (nan) are left out."""
    low, high = np.nanpercentile(scores, [2.5, 97.5])
    return [float(low), float(high)]
