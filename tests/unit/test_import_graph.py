"""The imports between the packages of fairseq_milk go in one direction (DESIGN section 2)."""

from pathlib import Path

from scripts.import_graph import LAYERS, ROOT, SERVICES, import_graph, mermaid, violations


def test_every_arrow_is_allowed() -> None:
    graph = import_graph()
    assert {"functional", "attention", "host", "console", "cli"} <= set(graph)
    assert graph["cli"] and graph["console"] == set(), "the sources were not read"
    assert violations(graph) == []


def test_an_arrow_that_is_not_allowed_is_found(tmp_path: Path) -> None:
    sources = {
        "functional/__init__.py": "",
        "functional/energy.py": "def f():\n    from ..console.errors import UserError\n",
        "console/__init__.py": "from .. import cli",
        "cli/__init__.py": "import fairseq_milk.functional.energy",
        "utils/__init__.py": "from fairseq_milk import console",
    }
    package = tmp_path / "fairseq_milk"
    for name, text in sources.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    graph = import_graph(package)
    assert graph == {"functional": {"console"}, "console": {"cli"}, "cli": {"functional"}, "utils": {"console"}}
    assert violations(graph) == ["utils has no layer", "console -> cli", "functional -> console"]


def test_the_graph_has_no_cycle_and_can_be_drawn() -> None:
    graph = import_graph()
    diagram = mermaid(graph).splitlines()
    assert diagram[0] == "graph BT" and "    attention --> functional" in diagram
    assert "    cli --> functional" not in diagram, "an arrow that others imply is left out"
    rows = {name: row for row, layer in enumerate(LAYERS) for name in layer}
    for arrow in diagram:
        if "-->" in arrow:
            start, end = arrow.split(" --> ")
            assert end in SERVICES or rows[start.strip()] > rows[end], arrow


def test_the_page_shows_the_graph() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    graph = import_graph()
    assert f"```mermaid\n{mermaid(graph)}\n```" in page, "run scripts/import_graph.py --record again"
    assert [name for name in graph if f"`fairseq_milk/{name}/`" not in page] == [], "not in the table of packages"
