"""The comparison of MILk and wait-k in the study."""

from typing import List, Optional

import numpy as np

from examples.verb_final.results import Results, Row

ENOUGH = 99.0  # per cent of exact sentences that a system must reach


def by_lag(results: Results, family: str) -> List[Row]:
    return sorted((row for row in results.rows if row.system.family == family), key=lambda row: row.mean("dal"))


def best_milk(results: Results) -> Optional[Row]:
    """The MILk with the lowest lag among those that reach `ENOUGH`; the most accurate one if none does."""
    rows = by_lag(results, "MILk")
    good = [row for row in rows if row.mean("exact") >= ENOUGH]
    if good:
        return good[0]
    return max(rows, key=lambda row: row.mean("exact")) if rows else None


def nearest_waitk(results: Results, row: Row) -> Optional[Row]:
    """The wait-k whose lag is nearest to that of the row."""
    rows = by_lag(results, "wait-k")
    return min(rows, key=lambda other: abs(other.mean("dal") - row.mean("dal"))) if rows else None


def waitk_at(results: Results, lag: float) -> str:
    """Per cent of exact sentences of wait-k at this DAL, interpolated between its points; the nearest point outside."""
    rows = by_lag(results, "wait-k")
    for row, beyond, where in ((rows[0], -1, "below"), (rows[-1], 1, "above")):
        if (lag - row.mean("dal")) * beyond > 0:
            return f"{where} {row.system.label} (DAL {row.mean('dal'):.2f})"
    return f"{np.interp(lag, [row.mean('dal') for row in rows], [row.mean('exact') for row in rows]):.1f}"


def findings(results: Results) -> List[str]:
    """The results of the comparison as sentences, as far as the systems have been trained."""
    milk = best_milk(results)
    if milk is None:
        return []
    said = [
        f"{milk.system.label}: {milk.mean('exact'):.1f} % of the sentences exact at DAL {milk.mean('dal'):.2f}, "
        f"{results.lag(milk):.2f} times the oracle's {results.oracle.mean('dal'):.2f}."
    ]
    waitk = nearest_waitk(results, milk)
    if waitk is not None:
        lost = 100 - waitk.mean("exact")
        said.append(f"{waitk.system.label}, the nearest in lag (DAL {waitk.mean('dal'):.2f}), loses {lost:.1f} %.")
    rows = by_lag(results, "wait-k")
    good = [row for row in rows if row.mean("exact") >= ENOUGH]
    if good:
        said.append(f"wait-k needs {good[0].system.point} (DAL {good[0].mean('dal'):.2f}) for {ENOUGH:g} %.")
    elif len(rows) > 1:
        said.append(f"No wait-k that was trained reaches {ENOUGH:g} %.")
    return said
