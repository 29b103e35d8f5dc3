"""Fills generated tables into a document that is written by hand.

A table stands between `<!-- table: TITLE -->` and the next `<!-- end -->`.
"""

import re
from pathlib import Path
from typing import List, Mapping

from fairseq_milk.console.errors import RunError
from fairseq_milk.console.tables import markdown_table

PLACE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(document: Path, tables: Mapping[str, List[List[str]]]) -> str:
    """The text of the document with its tables replaced; the titles must be those of `tables`."""
    text = document.read_text(encoding="utf-8")
    places = [title for _, title, _ in PLACE.findall(text)]
    if sorted(places) != sorted(tables):
        raise RunError(f"{document.name} has places for the tables {places}, and these were made: {list(tables)}")
    return PLACE.sub(lambda place: f"{place[1]}{markdown_table(tables[place[2]])}\n{place[3]}", text)
