"""The table of patches in `fairseq_milk.host` is complete, is in the docs, and names the versions that need a patch."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Dict, List

import pytest
import torch
from packaging.version import Version

import fairseq_milk.host

ROOT = Path(__file__).resolve().parents[2]
TABLE = [line for line in (fairseq_milk.host.__doc__ or "").splitlines() if line.startswith("|")]
ROWS: List[List[str]] = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE[2:]]
PATCHES = [row[0].strip("`") for row in ROWS]


def fairseq_version() -> str:
    try:
        return version("fairseq-fixed")
    except PackageNotFoundError:
        return version("fairseq")


@pytest.fixture(scope="module")
def flaws() -> Dict[str, bool]:
    """The flaws of the installed fairseq without the plugin."""
    program = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "support" / "stock_fairseq.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: Dict[str, bool] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("patch, versions", [(patch, row[3]) for patch, row in zip(PATCHES, ROWS)])
def test_a_patch_is_needed_with_the_versions_of_its_row(patch: str, versions: str, flaws: Dict[str, bool]) -> None:
    fairseqs, _, oldest_torch = versions.partition(" with torch >= ")
    needed = fairseq_version() in fairseqs.split(", ") and Version(torch.__version__) >= Version(oldest_torch or "0")
    assert flaws[patch] == needed, f"the patch of {patch} is needed with {versions}: is that still so?"


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
