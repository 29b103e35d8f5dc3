"""Compares two systems, or two curves, at equal DAL by paired bootstrap: both are resampled with the same sentences.

A curve connects the points of a system by straight lines.  Each resample moves the points in quality and in lag.  The
difference is computed for each resample: at the points of the first system that lie within the lags of the second, and
as the mean over the lags that both cover.

A point is the mean over its seeds, which are drawn with replacement too: the same seeds for all points with equally
many, since models of one seed start from the same model.  The intervals therefore cover the choice of test sentences
and, with several seeds, the variation between trainings.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from .bootstrap import RESAMPLES, SEED, Interval, central, resampled
from .score import Score

STEPS = 200  # number of lags over which the mean is taken


class Curve(NamedTuple):
    """The points of a system, by lag.  dal, quality: (points, 1 + resamples); column 0 is the measured value."""

    settings: List[str]
    dal: np.ndarray
    quality: np.ndarray

    def at(self, lag: np.ndarray, resample: int) -> np.ndarray:
        order = np.argsort(self.dal[:, resample])
        quality: np.ndarray = np.interp(lag, self.dal[order, resample], self.quality[order, resample])
        return quality


class CurveDifference(NamedTuple):
    """First minus second with its 95 % interval, and the share of the resamples in which the first is better.

    setting: of the first system, empty for a mean.  dal: the lag of the comparison; of a mean, the lowest and highest.
    """

    setting: str
    dal: Sequence[float]
    quality: Interval
    above: float

    def to_dict(self) -> Dict[str, Any]:
        return {**self._asdict(), "quality": self.quality._asdict()}

    @classmethod
    def from_dict(cls, fields: Dict[str, Any]) -> "CurveDifference":
        return cls(**{**fields, "quality": Interval(**fields["quality"])})


class Comparison(NamedTuple):
    """points: at the lags of the first system's points.  mean: over the common lags, None for a single point.

    share: share of these lags at which the first is better.  lag: first minus second in DAL, for two single points.
    """

    points: List[CurveDifference]
    mean: Optional[CurveDifference]
    share: float
    lag: Optional[Interval] = None


def make_curve(
    points: Sequence[Sequence[Score]],
    settings: Sequence[str],
    measure: str = "BLEU",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Curve:
    """The curve of a system.  points: the scores of each point, one per seed.  measure: 'BLEU' or 'chrF'."""
    found = []
    for setting, scores in zip(settings, points):
        drawn = np.random.default_rng([seed, len(scores)]).integers(len(scores), size=(len(scores), resamples))
        lag, quality = (_mean_over_seeds(scores, name, drawn, resamples, seed) for name in ("DAL", measure))
        found.append((setting, lag, quality))
    ordered, lags, qualities = zip(*sorted(found, key=lambda point: point[1][0]))
    return Curve(list(ordered), np.stack(lags), np.stack(qualities))


def _mean_over_seeds(scores: Sequence[Score], measure: str, drawn: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """The mean over seeds, measured and resampled: (1 + resamples,).  drawn: the seeds of each resample."""
    samples = [score.sample(measure) for score in scores]
    present = [sample for sample in samples if sample is not None]
    if len(present) < len(samples):
        raise ValueError(f"there is no {measure} for every run")
    by_seed = resampled(present, resamples, seed)  # (seeds, resamples)
    measured = np.mean([sample.corpus_score() for sample in present])
    return np.concatenate([[measured], np.take_along_axis(by_seed, drawn, axis=0).mean(0)])


def compare(first: Curve, second: Curve) -> Comparison:
    """First minus second at equal lag.  ValueError if the curves have no lag in common."""
    if len(first.settings) == len(second.settings) == 1:
        difference = _difference(first.settings[0], [first.dal[0, 0]], first.quality[0] - second.quality[0])
        share = float(difference.quality.score > 0)
        return Comparison([difference], None, share, lag=_interval(first.dal[0] - second.dal[0]))
    if len(second.settings) == 1:
        raise ValueError("a single point must come first: exchange the systems")
    shared = (second.dal[:, 0].min() <= first.dal[:, 0]) & (first.dal[:, 0] <= second.dal[:, 0].max())
    at_points = curve_difference(first, second, first.dal)
    points = [_difference(first.settings[n], [first.dal[n, 0]], at_points[n]) for n in np.flatnonzero(shared)]
    lags = common_lags(first, second)
    if lags[0, 0] > lags[-1, 0]:
        raise ValueError("the two systems have no lag in common")
    everywhere = curve_difference(first, second, lags)
    mean = None if len(first.settings) == 1 else _difference("", (lags[0, 0], lags[-1, 0]), everywhere.mean(0))
    return Comparison(points, mean, float((everywhere[:, 0] > 0).mean()))


def curve_difference(first: Curve, second: Curve, lag: np.ndarray) -> np.ndarray:
    """First minus second at the given lags, for each resample.  lag: (n, 1 + resamples) -> (n, 1 + resamples)."""
    columns = [first.at(lag[:, r], r) - second.at(lag[:, r], r) for r in range(lag.shape[1])]
    return np.stack(columns, axis=1)


def common_lags(first: Curve, second: Curve) -> np.ndarray:
    """Evenly spaced lags within the range of both curves: (STEPS, 1 + resamples)."""
    low = np.maximum(first.dal.min(0), second.dal.min(0))
    high = np.minimum(first.dal.max(0), second.dal.max(0))
    lags: np.ndarray = low + np.linspace(0, 1, STEPS)[:, None] * (high - low)
    return lags


def _difference(setting: str, dal: Sequence[float], differences: np.ndarray) -> CurveDifference:
    above = float((differences[1:] > 0).mean())
    return CurveDifference(setting, [float(lag) for lag in dal], _interval(differences), above)


def _interval(values: np.ndarray) -> Interval:
    return Interval(float(values[0]), *central(values[1:]))
