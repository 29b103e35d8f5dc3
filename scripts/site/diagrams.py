"""Replaces the Mermaid diagrams of a page, which GitHub draws, by tables: the site loads no scripts to draw them."""

import re
from typing import Dict, List

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ARROW = re.compile(r"^ *(\w+) --> (\w+)$", re.MULTILINE)


def as_tables(text: str) -> str:
    """The text of a page, each ```mermaid block replaced."""
    return BLOCK.sub(lambda match: _table(match.group(1)), text)


def _table(graph: str) -> str:
    imported: Dict[str, List[str]] = {}
    for name, target in ARROW.findall(graph):
        imported.setdefault(name, []).append(f"`{target}/`")
    rows = [f"| `{name}/` | {', '.join(targets)} |" for name, targets in imported.items()]
    return "\n".join(["| package | arrows to |", "|---|---|", *rows])
