"""The table that is printed at the end of a sweep."""

from typing import Sequence

from ..console.tables import text_table
from ..scoring.table import Result


def summary(results: Sequence[Result]) -> str:
    """The table for the terminal, the signatures of its figures, and the systems whose schedule has collapsed."""
    cells = [["system", "setting", "seed", "BLEU", "95 %", "DAL", "95 %", "AL", "AP"]]
    for r in results:
        bleu = [f"{r.bleu:.1f}", f"{r.bleu_low:.1f}-{r.bleu_high:.1f}"]
        dal = [f"{r.dal:.2f}", f"{r.dal_low:.2f}-{r.dal_high:.2f}"]
        cells.append([r.system, r.setting, str(r.seed), *bleu, *dal, f"{r.al:.2f}", f"{r.ap:.3f}"])
    signatures = sorted({s for r in results for s in (r.bleu_signature, r.latency_signature) if s})
    collapsed = [f"collapsed: {r.name} (seed {r.seed}) {r.collapse}" for r in results if r.collapse]
    lines = [text_table(cells), *(f"({signature})" for signature in signatures)]
    return "\n".join(lines + ["", *collapsed] if collapsed else lines)
