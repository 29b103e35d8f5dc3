"""Tables in a document whose prose is written by hand.

A table stands between `<!-- table: TITLE -->` and the next `<!-- end -->`.
"""

import re
from pathlib import Path
from typing import List, Mapping, Sequence

from fairseq_milk.console.errors import RunError

PLACE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown_table(cells: Sequence[Sequence[str]]) -> str:
    """The first row is the heading; the first column is aligned to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(cells[0]) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (cells[0], rule, *cells[1:]))


def fill(document: Path, tables: Mapping[str, List[List[str]]]) -> str:
    """The text of the document with each table in its place; there must be one place for each."""
    text = document.read_text(encoding="utf-8")
    places = [title for _, title, _ in PLACE.findall(text)]
    if sorted(places) != sorted(tables):
        raise RunError(f"{document.name} has places for the tables {places}, and these were made: {list(tables)}")
    return PLACE.sub(lambda place: f"{place[1]}{markdown_table(tables[place[2]])}\n{place[3]}", text)
