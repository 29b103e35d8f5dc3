"""RELIABILITY.md: every promise names a test, and every test, program and module that it names exists."""

import re
from pathlib import Path
from typing import List, Tuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "RELIABILITY.md").read_text(encoding="utf-8")
PROMISES = ("## Faults", "## Bad input")
PACKAGE = ROOT / "fairseq_milk"


def rows(heading: str) -> List[Tuple[str, ...]]:
    """The rows of the first table below a heading, without its own heading."""
    below = PAGE.split(f"{heading}\n")[1].split("\n## ")[0]
    lines = [line for line in below.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines[2:]]


@pytest.mark.parametrize("heading", PROMISES)
def test_every_promise_names_a_test(heading: str) -> None:
    found = rows(heading)
    assert len(found) > 10
    for promise, held_by in found:
        assert re.search(r"`tests/(unit|commands)/test_\w+\.py`", held_by), promise


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"\btests/[\w/.]*\.py\b", PAGE))
    assert len(named) > 20
    assert not [name for name in sorted(named) if not (ROOT / name).is_file()]


def test_every_program_that_is_named_exists() -> None:
    programs = set(re.findall(r"python -m ([\w.]+)", PAGE))
    assert programs and all((ROOT / f"{name.replace('.', '/')}.py").is_file() for name in programs)
    runs = set(re.findall(r"scripts/faults\.sh ([\w-]+)", PAGE))
    script = (ROOT / "scripts" / "faults.sh").read_text(encoding="utf-8")
    assert runs and not [run for run in sorted(runs) if f"\n      {run}) " not in script]


def test_every_module_that_is_named_exists() -> None:
    """As a file (`host/archives.py`) or as a module with one of its names (`host.checkpoint_file.verify_checksums`)."""
    files = {name for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", PAGE) if not name.startswith("tests/")}
    assert files and not [
        name for name in sorted(files) if not any((base / name).is_file() for base in (PACKAGE, ROOT))
    ]
    packages = "|".join(path.name for path in PACKAGE.iterdir() if path.is_dir())
    names = set(re.findall(rf"`((?:{packages})(?:\.\w+)+)`", PAGE))
    assert names and not [name for name in sorted(names) if not is_there(name)]


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or is defined in one."""
    package, module, *inner = name.split(".")
    path = PACKAGE / package / f"{module}.py"
    if not path.is_file():
        return False
    source = path.read_text(encoding="utf-8")
    return not inner or re.search(rf"^(def|class) {inner[0]}\b|^{inner[0]}\b.*=", source, re.M) is not None
