"""The documentation as scripts/docs.sh builds it: strict, and without anything from elsewhere."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-docs" / "bin" / "python"
# What a browser loads by itself; a link is only followed.
LOADED = re.compile(r"""<(?:script|img|iframe)[^>]*\bsrc=["']?(?:https?:)?//|<link[^>]*\bhref=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PYTHON.exists():
        pytest.skip("scripts/setup.sh --docs has not been run")
    folder = tmp_path_factory.mktemp("site")
    command = [str(PYTHON), "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, stdout=-1, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return folder


def test_what_is_generated_is_there(site: Path) -> None:
    expected = {
        "reference/commands.html": "fairseq-milk plot plane",
        "reference/fairseq-options.html": "--latency-weight",
        "reference/python.html": "expected_alignment",
        "reference/formats.html": "latency-weight",
        "explanation/paper.html": "<math",
        "explanation/benchmarks.html": "Against the bars",
    }
    for page, words in expected.items():
        assert words in (site / page).read_text(encoding="utf-8"), page


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    found = {page.name: LOADED.findall(page.read_text(encoding="utf-8")) for page in pages}
    assert len(pages) > 40 and {name: urls for name, urls in found.items() if urls} == {}
