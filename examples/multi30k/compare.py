"""Two curves of a sweep at equal DAL, by paired bootstrap: every sentence is drawn for both at once.

    python -m examples.multi30k.compare examples/multi30k/sweep-de-en/results.csv milk wait-k
    python -m examples.multi30k.compare examples/multi30k/sweep-de-en/results.csv milk-val wait-k-val

A curve is what lies straight between the points of a system.  A resample moves its points in both directions, and the
difference is taken anew: at the points of the first system that lie within the second's lags, and as the mean over the
lags that both have.  BLEU is against the references of the logs.
"""

import argparse
import sys
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import sacrebleu

from fairseq_milk.analysis import read_generate_log
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.scoring import sentence_latency
from fairseq_milk.scoring.bootstrap import RESAMPLES, SEED, Sample, central, corpus_sample, mean_sample, resampled
from fairseq_milk.sweep.table import Result, read_results

STEPS = 200  # of the mean over the lags


class Curve(NamedTuple):
    """The points of a system, by lag.  dal, bleu: (points, 1 + resamples), first as they were measured."""

    settings: List[str]
    dal: np.ndarray
    bleu: np.ndarray

    def at(self, lag: np.ndarray, resample: int) -> np.ndarray:
        order = np.argsort(self.dal[:, resample])
        return np.interp(lag, self.dal[order, resample], self.bleu[order, resample])


def curve(rows: Sequence[Result]) -> Curve:
    if len(rows) < 2:
        raise UserError("a curve needs two points or more: give the names of systems as the table has them")
    rows = sorted(rows, key=lambda row: row.dal)
    samples: List[Tuple[Sample, Sample]] = []
    for row in rows:
        log = read_generate_log(row.log)
        hypotheses, references = log.texts()
        lags = [None if latency is None else latency.DAL for latency in sentence_latency(log.records)]
        samples.append((mean_sample(lags), corpus_sample(sacrebleu.BLEU(), hypotheses, references or [])))
    dal, bleu = (
        np.concatenate([[[s.corpus_score()] for s in kind], resampled(kind, RESAMPLES, SEED)], axis=1)
        for kind in zip(*samples)
    )
    return Curve([row.setting for row in rows], dal, bleu)


def difference(first: Curve, second: Curve, lag: np.ndarray) -> np.ndarray:
    """First minus second at the lags of a resample.  lag: (n, 1 + resamples) -> (n, 1 + resamples)."""
    columns = [first.at(lag[:, r], r) - second.at(lag[:, r], r) for r in range(lag.shape[1])]
    return np.stack(columns, axis=1)


def common_lags(first: Curve, second: Curve) -> np.ndarray:
    """(STEPS, 1 + resamples), evenly over what both curves have."""
    low = np.maximum(first.dal.min(0), second.dal.min(0))
    high = np.minimum(first.dal.max(0), second.dal.max(0))
    return low + np.linspace(0, 1, STEPS)[:, None] * (high - low)


def line(name: str, lag: str, differences: np.ndarray) -> str:
    low, high = central(differences[1:])
    return (
        f"| {name} | {lag} | {differences[0]:+.2f} ({low:+.2f} to {high:+.2f}) | {(differences[1:] > 0).mean():.0%} |"
    )


def table(first: Curve, second: Curve, names: Tuple[str, str]) -> str:
    lags = common_lags(first, second)
    everywhere = difference(first, second, lags)
    lines = [f"| {names[0]} - {names[1]} | DAL | BLEU (95 %) | resamples above |", "|---|---|---|---|"]
    at_points = difference(first, second, first.dal)
    for point, setting in enumerate(first.settings):
        lag = first.dal[point, 0]
        if second.dal[:, 0].min() <= lag <= second.dal[:, 0].max():
            lines.append(line(setting, f"{lag:.2f}", at_points[point]))
    lines.append(line("mean over both", f"{lags[0, 0]:.2f} to {lags[-1, 0]:.2f}", everywhere.mean(0)))
    above = (everywhere[:, 0] > 0).mean()
    return "\n".join([*lines, "", f"{names[0]} is above {names[1]} over {above:.0%} of these lags."])


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Two curves at equal DAL, with what chance has to do with it.")
    parser.add_argument("table", type=Path, help="results.csv of a sweep")
    parser.add_argument("systems", nargs=2, metavar="SYSTEM", help="for example: milk wait-k")
    args = parser.parse_args(argv)

    def body() -> int:
        rows = read_results(args.table)
        curves = [curve([row for row in rows if row.system == name]) for name in args.systems]
        print(table(curves[0], curves[1], tuple(args.systems)))
        return 0

    return exit_code("compare", body)


if __name__ == "__main__":
    sys.exit(main())
