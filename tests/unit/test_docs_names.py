"""The files and functions that the documents name exist."""

import ast
import re
from pathlib import Path
from typing import Set

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
FOLDERS = "fairseq_milk|tests|examples|scripts|benchmarks|docs"
# `folder/file.py`, and what follows it as `Class.method` after a colon.
HOP = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)`(?:\]\([^)]*\))?(?:: `([A-Za-z_][\w.]*)(?:\([^`]*\))?`)?")


def defined(path: Path) -> Set[str]:
    """Functions, classes, methods and names of a module, as `name` and `Class.method`."""
    names: Set[str] = set()

    def collect(body: "list[ast.stmt]", prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    collect(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(prefix + target.id for target in targets if isinstance(target, ast.Name))
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                collect(node.body, prefix)

    collect(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return names


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_exists(document: Path) -> None:
    missing = []
    for name, function in HOP.findall(document.read_text(encoding="utf-8")):
        path = ROOT / name
        if not path.exists():
            missing.append(name)
        elif function and function not in defined(path):
            missing.append(f"{name}: {function}")
    assert missing == []


def test_a_name_that_is_not_there_is_found() -> None:
    here = "tests/unit/test_docs_names.py"
    assert HOP.findall(f"`{here}`: `defined`, `{here}`: `Gone.away(x)`, [`{here}`](../{here}): `HOP`") == [
        (here, "defined"),
        (here, "Gone.away"),
        (here, "HOP"),
    ]
    names = defined(ROOT / here)
    assert {"defined", "HOP", "test_what_a_document_names_exists"} <= names and "Gone.away" not in names
