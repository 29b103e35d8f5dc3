"""Training with products in bfloat16 against float32: the pairs of the sweep, compared by paired bootstrap.

results/precision.csv has the line of each system, results/precision.json what `fairseq-milk compare` says of each pair.
"""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from examples.recording import Cells, compare, figures_by_seed
from fairseq_milk.console.errors import RunError, UserError
from fairseq_milk.console.files import write_atomically
from fairseq_milk.console.tables import difference_with_bounds
from fairseq_milk.scoring.bootstrap import Interval
from fairseq_milk.scoring.table import Result, as_csv, read_results

KEPT = Path(__file__).resolve().parent / "results"
TABLE, COMPARISONS = KEPT / "precision.csv", KEPT / "precision.json"
PAIRS = {"soft-short": "soft-short-bf16", "milk-short": "milk-short-bf16"}  # float32: the same in bfloat16
SYSTEMS = (*PAIRS, *PAIRS.values())
MISSING = "–"


def precision_table() -> Cells:
    """Both trainings of each pair, seed by seed, and their difference; dashes for what has not been trained."""
    results = read_results(TABLE) if TABLE.exists() else []
    known = {name: [result for result in results if result.system == name] for name in SYSTEMS}
    compared = json.loads(COMPARISONS.read_text(encoding="utf-8")) if COMPARISONS.exists() else {}

    def figures(trained: Sequence[Result]) -> List[str]:
        return figures_by_seed(trained) if trained else [MISSING] * 4

    cells = [["system", "BLEU of each seed", "mean", "DAL of each seed", "mean", "BLEU more (95 %)", "DAL more (95 %)"]]
    for exact, rounded in PAIRS.items():
        cells.append([exact, *figures(known[exact]), "", ""])
        cells.append([rounded, *figures(known[rounded]), *_differences(compared.get(rounded))])
    return cells


def _differences(comparison: Optional[Dict[str, Any]]) -> List[str]:
    if comparison is None:
        return [MISSING] * 2
    (point,) = comparison["points"]
    intervals = point["quality"], comparison["lag"]
    return [difference_with_bounds(*Interval(**one)) for one in intervals]


def record_pairs(sweep: Path) -> None:
    """Keep what the sweep has of the pairs: their lines, and the comparison of those that are complete."""
    table = sweep / "results.csv"
    results = [result for result in read_results(table) if result.system in SYSTEMS]
    if not results:
        raise UserError(f"{table} has none of {', '.join(SYSTEMS)}")
    known = {result.system for result in results}
    complete = {exact: rounded for exact, rounded in PAIRS.items() if {exact, rounded} <= known}
    compared = {rounded: compare(table, rounded, exact, "test") for exact, rounded in complete.items()}
    if None in compared.values():
        raise RunError(f"`fairseq-milk compare` failed on {table}")
    write_atomically(TABLE, as_csv(results, sweep))
    write_atomically(COMPARISONS, json.dumps(compared, indent=1) + "\n")
