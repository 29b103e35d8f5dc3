"""The documentation: links, navigation, and agreement with the code."""

import re
from typing import Any, Iterator, List, Set

import pytest
import yaml

from fairseq_milk.live.manifest import Manifest
from fairseq_milk.scoring.latency import CONVENTIONS
from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.table import TYPES
from fairseq_milk.sweep import spec
from scripts.site import commands, diagrams, links, python_api

ROOT = links.ROOT
PATHS = links.site_paths()
DOCUMENTS = sorted({*PATHS, "README.md"})
GENERATED = re.compile(r"<!-- generated: ([\w-]+) -->")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def missing_links(document: str, content: str) -> List[str]:
    return [link.url for link in links.links(content, document) if link.path and not resolves(link)]


def resolves(link: links.Link) -> bool:
    if not (ROOT / link.path).exists():
        return False
    return not link.anchor or link.anchor in set(links.anchors(text(link.path)))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_and_anchor_resolves(document: str) -> None:
    assert missing_links(document, text(document)) == []


def test_a_broken_link_is_found() -> None:
    content = "[a](gone.md) [![b](gone.png)](../README.md) [c](index.md#gone) `[d](code.md)` [e](https://example.org)\n"
    assert sorted(missing_links("docs/index.md", content)) == ["gone.md", "gone.png", "index.md#gone"]


def test_links_in_the_site_go_to_its_pages() -> None:
    page = "docs/explanation/exact-alpha.md"
    content = (
        "[a](paper.md#x) [b](../../BENCHMARKS.md) [c](../../setup.py) ![d](../../examples/a.png) [e](../../examples)"
    )
    expected = "[a](paper.md#x) [b](benchmarks.md) c ![d](../examples/a.png) [e](../examples/index.md)"
    assert links.for_site(content, page, PATHS) == expected


def nav_pages(nav: Any) -> Iterator[str]:
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(value, str):
            yield value
        else:
            yield from nav_pages(value)


def test_the_navigation_has_every_page_once() -> None:
    assert sorted(nav_pages(yaml.safe_load(text("mkdocs.yml"))["nav"])) == sorted(PATHS.values())


def test_every_generated_section_has_its_place() -> None:
    hook = text("scripts/site/hook.py")
    wanted = re.findall(r'^    "([\w-]+)": ', hook, flags=re.MULTILINE)
    found = [name for document in DOCUMENTS for name in GENERATED.findall(text(document))]
    assert len(wanted) == 4 and sorted(found) == sorted(wanted)


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len(text("README.md").split()) <= 900


def named(page: str, section: str = "") -> Set[str]:
    """The names in backquotes in a section of a page."""
    content = text(page)
    content = content.partition(f"\n## {section}\n")[2].partition("\n## ")[0] if section else content
    return set(re.findall(r"`([^`\n]+)`", content))


def test_the_file_formats_name_every_field() -> None:
    page = "docs/reference/formats.md"
    assert set(Record._fields) <= named(page, "generate-SUBSET.jsonl")
    assert set(TYPES) <= named(page, "results.csv, results.json")
    assert set(Manifest.__dataclass_fields__) <= named(page, "model.json")


def test_the_conventions_of_latency_are_those_of_the_code() -> None:
    page = named("docs/reference/latency.md", "Conventions")
    for name, convention in CONVENTIONS.items():
        assert {name, convention.signature().rpartition("|")[0].replace("|", "\\|")} <= page


def test_the_reference_of_a_verb_has_all_its_arguments() -> None:
    page = commands.verbs_page()
    for expected in ("## `fairseq-milk score`", "### `fairseq-milk plot plane`", "| `--bootstrap` N |", "`paper`"):
        assert expected in page
    assert "## `fairseq-milk plot`" in page and "*codes*" not in re.sub(r"`[^`]*`", "", page)


def test_the_sweep_file_is_described_as_its_help_does() -> None:
    shown = commands.sweep_file()
    example = yaml.safe_load(shown.split("```")[1].partition("\n")[2])
    assert {"data", "train", "generate", "references", "slurm", "systems"} <= set(example)
    assert all(line in shown for line in (spec.__doc__ or "").split("\n\n")[-1].splitlines())


def test_every_picture_is_shown() -> None:
    pages = [(document, text(document)) for document in PATHS]
    shown = {link.path for document, content in pages for link in links.links(content, document) if link.image}
    drawn = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.png")}
    assert drawn <= shown


def test_the_import_graph_is_a_table_in_the_site() -> None:
    shown = diagrams.as_tables("a\n```mermaid\ngraph BT\n    b[b/]\n    b --> c\n    b --> d\n```\n")
    assert shown == "a\n| package | arrows to |\n|---|---|\n| `b/` | `c/`, `d/` |\n"


def test_a_docstring_keeps_what_is_laid_out_in_it() -> None:
    shown = python_api.markdown("Note: |x|.\n\n    y = x\n\ne, f: of any size\n   more\n\nThe end.")
    assert shown == "Note: \\|x\\|.\n\n```text\n    y = x\n\ne, f: of any size\n   more\n```\n\nThe end."
