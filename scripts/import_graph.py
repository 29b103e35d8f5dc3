"""Computes the import graph of the packages of fairseq_milk from the sources.

    python scripts/import_graph.py            one line per package, with the packages that it imports
    python scripts/import_graph.py --mermaid  the same as a diagram
    python scripts/import_graph.py --record   writes the diagram to docs/explanation/architecture.md

A package may import packages of earlier rows of `LAYERS`.  `console`, `host` and `text` are used by all packages after
the mathematics and do not import the mathematics.
"""

import argparse
import ast
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fairseq_milk"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"

LAYERS: Tuple[Tuple[str, ...], ...] = (
    ("functional",),
    ("attention",),
    ("modules",),
    ("models",),
    ("criterions", "optim", "scoring"),
    ("generation",),
    ("tasks",),
    ("checks", "sweep"),
    ("live",),
    ("analysis", "agents"),
    ("cli",),
)
MATHEMATICS = ("functional", "attention")
SERVICES = {"console": (), "host": ("console",), "text": ("console",)}  # with what they may import themselves


def import_graph(package: Path = PACKAGE) -> Dict[str, Set[str]]:
    """For each subpackage, the other subpackages that its modules import, also inside functions."""
    graph = {folder.parent.name: set() for folder in package.glob("*/__init__.py")}  # type: Dict[str, Set[str]]
    for name, imported in graph.items():
        for path in (package / name).rglob("*.py"):
            imported.update(target for target in _imports(path, package) if target in graph)
        imported.discard(name)
    return graph


def _imports(path: Path, package: Path) -> Iterator[str]:
    """The subpackage of every name that a module imports."""
    inside = path.relative_to(package.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = list(inside[: len(inside) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            names = [".".join([*base, alias.name]) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == package.name and len(parts) > 1:
                yield parts[1]


def allowed(package: str) -> Set[str]:
    """The packages that a package may import."""
    if package in SERVICES:
        return set(SERVICES[package])
    row = next(row for row, layer in enumerate(LAYERS) if package in layer)
    below = {name for layer in LAYERS[:row] for name in layer}
    return below if package in MATHEMATICS else below | set(SERVICES)


def violations(graph: Dict[str, Set[str]]) -> List[str]:
    """The imports that are not allowed, like 'generation -> cli', and the packages without a layer."""
    known = {name for layer in LAYERS for name in layer} | set(SERVICES)
    unknown = [f"{name} has no layer" for name in sorted(set(graph) - known)]
    return unknown + [
        f"{name} -> {target}"
        for name, targets in sorted(graph.items())
        if name in known
        for target in sorted(targets - allowed(name))
    ]


def mermaid(graph: Dict[str, Set[str]]) -> str:
    """A diagram that GitHub and the documentation site draw: an arrow points to the package that is imported."""
    services = [f"    {name}([{name}/])" for name in SERVICES]
    packages = [f"    {name}[{name}/]" for layer in LAYERS for name in layer if name in graph]
    arrows = [f"    {name} --> {target}" for name in sorted(graph) for target in sorted(_direct(graph, name))]
    return "\n".join(["graph BT", *packages, *services, *arrows])


def _direct(graph: Dict[str, Set[str]], name: str) -> Set[str]:
    """The imports of a package without those that follow from its other imports."""
    return {
        target
        for target in graph[name]
        if not any(target in _reachable(graph, other) for other in graph[name] - {target})
    }


def _reachable(graph: Dict[str, Set[str]], name: str) -> Set[str]:
    found: Set[str] = set()
    waiting = [name]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def record(graph: Dict[str, Set[str]]) -> None:
    """Replace the diagram of docs/explanation/architecture.md."""
    page = PAGE.read_text(encoding="utf-8")
    before, start, rest = page.partition("```mermaid\n")
    PAGE.write_text(f"{before}{start}{mermaid(graph)}\n```{rest.partition('```')[2]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="The import graph of the packages of fairseq_milk.")
    parser.add_argument("--mermaid", action="store_true", help="as a Mermaid diagram")
    parser.add_argument("--record", action="store_true", help="write the diagram to docs/explanation/architecture.md")
    args = parser.parse_args()
    graph = import_graph()
    if args.record:
        record(graph)
    elif args.mermaid:
        print(mermaid(graph))
    else:
        for name, targets in sorted(graph.items()):
            print(f"{name}: {', '.join(sorted(targets)) or '-'}")
        print("\n".join(violations(graph)) or "all arrows are allowed")


if __name__ == "__main__":
    main()
