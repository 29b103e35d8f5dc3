"""The table that is printed at the end of a sweep."""

from typing import List, Sequence

from ..console.tables import text_table
from ..scoring.table import Result

HEADING = ["system", "setting", "seed", "BLEU", "95 %", "DAL", "95 %", "AL", "AP"]


def summary(results: Sequence[Result]) -> str:
    """The table for the terminal, the signatures of its figures, and the systems whose schedule has collapsed."""
    signatures = sorted({s for r in results for s in (r.bleu_signature, r.latency_signature) if s})
    said = [text_table([HEADING, *map(_cells, results)]), *(f"({signature})" for signature in signatures)]
    return "\n".join([*said, *_collapsed(results)])


def _cells(r: Result) -> List[str]:
    return [
        r.system,
        r.setting,
        str(r.seed),
        f"{r.bleu:.1f}",
        f"{r.bleu_low:.1f}-{r.bleu_high:.1f}",
        f"{r.dal:.2f}",
        f"{r.dal_low:.2f}-{r.dal_high:.2f}",
        f"{r.al:.2f}",
        f"{r.ap:.3f}",
    ]


def _collapsed(results: Sequence[Result]) -> List[str]:
    lines = [f"collapsed: {r.name} (seed {r.seed}) {r.collapse}" for r in results if r.collapse]
    return ["", *lines] if lines else []
