"""The figures of analysis/paper_results.py are those of the paper's tables."""

import math
import re
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from fairseq_milk.analysis.paper_results import NAMES, NOISE, PRESERVATION, TEST_SETS

TEX = Path(__file__).resolve().parents[3] / "shared" / "paper" / "milk.tex"
LETTERS = {"k": "k", r"\mathit{cs}": "w", r"\lambda": "λ"}
CAPTIONS = {"deen": "Complete DeEn test set results", "enfr": "Complete EnFr test set results"}
needs_paper = pytest.mark.skipif(not TEX.is_file(), reason=f"the paper is not at {TEX}")


def tables() -> List[str]:
    return re.findall(r"\\begin\{table\}.*?\\end\{table\}", TEX.read_text(encoding="utf-8"), flags=re.DOTALL)


def numbers(table: str) -> List[Tuple[float, ...]]:
    """The lines of a table that hold nothing but numbers."""
    lines = [re.sub(r"\\textbf\{(.*?)\}|\\\\", r"\1", line).split("&") for line in table.splitlines()]
    return [tuple(map(float, line)) for line in lines if all(re.fullmatch(r"\s*[\d.]+\s*", cell) for cell in line)]


@needs_paper
@pytest.mark.parametrize("pair", TEST_SETS)
def test_test_sets(pair: str) -> None:
    (table,) = [table for table in tables() if CAPTIONS[pair] in table]
    line = re.compile(r"& \$(\S+)=([\d.]+)\$ & ([\d.]+) & ([\d.]+) & ([\d.]+) & ([\d.]+)")
    said = [(LETTERS[m[0]], *map(float, m[1:])) for m in line.findall(table)]
    ours = []
    for row in TEST_SETS[pair]:
        letter, value = row.setting.split("=")
        ours.append((letter, float(value), row.bleu, row.dal, row.al, row.ap))
    assert ours == said and len(ours) > 20


@needs_paper
def test_development_tables() -> None:
    (preservation,) = [numbers(table) for table in tables() if "with and without mass preservation" in table]
    (noise,) = [numbers(table) for table in tables() if "discreteness parameter" in table]
    assert [(key, *values) for key, values in PRESERVATION.items()] == preservation
    assert [(key, *values) for key, values in NOISE.items()] == noise


@pytest.mark.parametrize(
    "pair, lines, sums",
    [("deen", 25, (671.1, 276.7, 238.6, 19.14)), ("enfr", 24, (934.9, 256.0, 222.8, 17.94))],
)
def test_sums(pair: str, lines: int, sums: Tuple[float, ...]) -> None:
    """The sums of the figures, for machines without the text of the paper."""
    rows = TEST_SETS[pair]
    assert len(rows) == lines and pair in NAMES
    assert [math.fsum(getattr(row, name) for row in rows) for name in ("bleu", "dal", "al", "ap")] == pytest.approx(
        sums
    )


def test_systems_have_one_letter_each() -> None:
    letters: Dict[str, str] = {"wait-k": "k", "MoChA": "w", "MILk": "λ"}
    for rows in TEST_SETS.values():
        assert all(row.setting.split("=")[0] == letters[row.system] for row in rows)
