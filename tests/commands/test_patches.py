"""The table of patches in `fairseq_milk.host` is complete, stands in the docs, and each patch is still needed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

import fairseq_milk.host

ROOT = Path(__file__).resolve().parents[2]
TABLE = [line for line in (fairseq_milk.host.__doc__ or "").splitlines() if line.startswith("|")]
ROWS: List[List[str]] = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE[2:]]
PATCHES = [row[0].strip("`") for row in ROWS]


@pytest.fixture(scope="module")
def flaws() -> Dict[str, bool]:
    """What is wrong with the installed fairseq without the plugin."""
    program = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "support" / "stock_fairseq.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: Dict[str, bool] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("patch", PATCHES)
def test_a_patch_is_still_needed(patch: str, flaws: Dict[str, bool]) -> None:
    assert flaws[patch], f"fairseq no longer needs the patch of {patch}: remove it"


def test_there_is_no_other(flaws: Dict[str, bool]) -> None:
    assert set(flaws) == set(PATCHES) and len(PATCHES) == len(set(PATCHES))


def test_the_table_names_modules_that_exist() -> None:
    for row in ROWS:
        assert len(row) == 4
        for module in row[2].replace("`", "").split(", "):
            parts = module.split(".")
            places = [ROOT / "fairseq_milk" / "host" / f"{module}.py", ROOT.joinpath("fairseq_milk", *parts)]
            places.append(ROOT.joinpath("fairseq_milk", *parts).with_suffix(".py"))
            assert any(place.exists() for place in places), module


def test_the_table_stands_in_the_docs() -> None:
    page = (ROOT / "docs" / "reference" / "patches.md").read_text(encoding="utf-8")
    assert "\n".join(TABLE) in page
