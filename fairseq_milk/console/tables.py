"""Tables of text, for the terminal and for Markdown, and figures with the bounds of an interval.

The first row of `cells` is the heading; the first column is aligned to the left, the others to the right.
"""

from typing import Sequence

import tabulate

tabulate.MIN_PADDING = 0  # a column is as wide as its widest cell

Cells = Sequence[Sequence[str]]


def text_table(cells: Cells, last: str = "right") -> str:
    """A table for the terminal.  last: alignment of the last column, 'left' if it holds text."""
    heading, *rows = cells
    sides = ["left", *["right"] * (len(heading) - 2), last][: len(heading)]
    return str(tabulate.tabulate(rows, heading, disable_numparse=True, colalign=sides if rows else None))


def markdown_table(cells: Cells) -> str:
    """A table in Markdown.  Cells are not padded, so that a changed number changes one line of the file."""
    rule = ["---", *["---:"] * (len(cells[0]) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (cells[0], rule, *cells[1:]))


def bounds(low: float, high: float, places: int = 2) -> str:
    """For example [29.10, 31.20]."""
    return f"[{low:.{places}f}, {high:.{places}f}]"


def with_bounds(value: float, low: float, high: float, places: int = 2) -> str:
    """For example 30.10 (29.10–31.20)."""
    return f"{value:.{places}f} ({low:.{places}f}–{high:.{places}f})"


def difference_with_bounds(value: float, low: float, high: float) -> str:
    """For example +0.50 (-0.10 to +1.10)."""
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"
