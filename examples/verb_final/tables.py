"""The tables: for the terminal, for Markdown, and results.csv."""

from pathlib import Path
from typing import Dict, List, Optional, Sequence

from examples.verb_final import recipe
from examples.verb_final.comparison import by_lag, findings, waitk_at
from examples.verb_final.language import KINDS
from examples.verb_final.results import SIGNATURE, Results, Row
from fairseq_milk.console.files import write_atomically
from fairseq_milk.console.tables import markdown_table, with_bounds
from fairseq_milk.scoring.table import write_results

DIGITS = {"bleu": 1, "exact": 1, "dal": 2, "al": 2, "ap": 3, **{kind: 1 for kind in KINDS}}
TITLES = {"exact": "exact %", **{kind: f"{kind} %" for kind in KINDS}}
LAG = "DAL/oracle"
LARGE = "Large λ"
APART = ("MILk ablated", "MILk noise")  # families with a table of their own
CAPTION = (
    "exact: whole sentences translated without a mistake, also by kind of sentence. Latency: mean over the sentences, "
    f"{SIGNATURE}."
)


def table(results: Results, rows: Optional[Sequence[Row]] = None) -> List[List[str]]:
    """Heading and cells, with mean and range over several seeds.  The oracle comes first.

    If the number of seeds differs between systems, the last column shows it.
    """
    shown = [results.oracle, *(results.rows if rows is None else rows)]
    uneven = len({len(row.seeds) for row in results.rows}) > 1
    heading = ["system", "BLEU", "exact %", "DAL", LAG, "AL", "AP", *(TITLES[kind] for kind in KINDS)]
    heading += ["seeds"] * uneven
    body = [
        [
            row.system.label,
            *(_cell(row, measure) for measure in ("bleu", "exact", "dal")),
            f"{results.lag(row):.2f}",
            *(_cell(row, measure) for measure in ("al", "ap", *KINDS)),
            *[str(len(row.seeds) or "")] * uneven,
        ]
        for row in shown
    ]
    return [heading, *body]


def _cell(row: Row, measure: str) -> str:
    digits, (low, high) = DIGITS[measure], row.range(measure)
    if len(row.results) == 1 or f"{low:.{digits}f}" == f"{high:.{digits}f}":
        return f"{row.mean(measure):.{digits}f}"
    return with_bounds(row.mean(measure), low, high, digits)


def study_tables(results: Results) -> Dict[str, List[List[str]]]:
    """The tables of the study by title, as far as the systems have been trained."""
    rows = {row.system.key: row for row in results.rows}
    transformers = [key for key in rows if key.startswith("transformer-")]
    lstms = [key.partition("-")[2] for key in transformers]
    groups = {
        "At about the same lag": ["wait-4", recipe.milk_key(recipe.LAMBDA)],
        "All mechanisms": [key for key in rows if key not in transformers and rows[key].system.family not in APART],
        "Alignment and mass": [recipe.milk_key(recipe.LAMBDA), "milk-published", "milk-unpreserved"],
        "Noise": [recipe.noise_key(n) for n in recipe.NOISES],
        "Both model families": [*lstms, *transformers],
    }
    found = {title: [rows[key] for key in keys if key in rows] for title, keys in groups.items()}
    shown = {title: members for title, members in found.items() if members and (len(members) > 1 or len(rows) == 1)}
    tables = {title: table(results, members) for title, members in shown.items()}
    if "Noise" in tables:
        names = {recipe.noise_key(n): f"MILk, n = {n:g}" for n in recipe.NOISES}
        for cells, row in zip(tables["Noise"][2:], found["Noise"]):
            cells[0] = names[row.system.key]
    keys = [recipe.milk_key(lam) for lam in recipe.LAMBDAS if lam >= recipe.LAMBDA]
    large = [rows[key] for key in keys if key in rows]
    if len(large) > 1 and len(by_lag(results, "wait-k")) > 1:
        tables[LARGE] = large_lambda_table(results, large)
    return tables


def large_lambda_table(results: Results, rows: Sequence[Row]) -> List[List[str]]:
    """MILk down to its lowest lag, and wait-k at the same lags."""
    heading = ["system", "DAL", LAG, "exact %", "wait-k at the same DAL, exact %"]
    body = [
        [row.system.label, _cell(row, "dal"), f"{results.lag(row):.2f}", _cell(row, "exact")]
        + [waitk_at(results, row.mean("dal"))]
        for row in rows
    ]
    return [heading, *body]


def markdown(results: Results) -> str:
    parts = ["\n".join(f"- {sentence}" for sentence in findings(results))]
    parts += [f"## {title}\n\n{markdown_table(cells)}" for title, cells in study_tables(results).items()]
    seeds = sorted({seed for row in results.rows for seed in row.seeds})
    parts.append(f"{CAPTION} Seeds: {', '.join(map(str, seeds))}; mean (lowest–highest).")
    return "\n\n".join(part for part in parts if part) + "\n"


def write_files(results: Results, folder: Path) -> List[Path]:
    """Write results.json, results.csv and tables.md; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "tables.md", markdown(results))
    return [*write_results(results.table(), folder), folder / "tables.md"]
