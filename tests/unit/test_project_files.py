"""The workflow, pre-commit, CITATION.cff and README name the same versions and tools as setup.py and scripts/."""

import re
from pathlib import Path
from typing import Any, List

import yaml

from fairseq_milk.version import __version__

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def load(name: str) -> Any:
    return yaml.safe_load(text(name))


def pythons() -> List[str]:
    """The versions that scripts/setup.sh accepts."""
    match = re.search(r"^ +([\d. |]+)\) ;;$", text("scripts/setup.sh"), flags=re.MULTILINE)
    assert match is not None
    return match.group(1).split(" | ")


def test_the_versions_of_python_are_the_same_everywhere() -> None:
    first, last = pythons()[0], pythons()[-1]
    next_minor = f"3.{int(last.split('.')[1]) + 1}"
    assert f'python_requires=">={first},<{next_minor}"' in text("setup.py")
    assert f"PYTHONS = {tuple(pythons())}".replace("'", '"') in text("setup.py")
    assert f'target-version = "py{first.replace(".", "")}"' in text("pyproject.toml")
    assert text("scripts/setup.sh").count(f"{first} to {last}") == 3
    assert f"Python {first} to {last}" in text("README.md")


def test_the_workflow_runs_the_tests_on_each() -> None:
    job = load(".github/workflows/test.yml")["jobs"]["test"]
    assert [row["python"] for row in job["strategy"]["matrix"]["include"]] == pythons()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert [command.split()[0] for command in commands] == ["scripts/test.sh"]
    options = " ".join(row["options"] for row in job["strategy"]["matrix"]["include"]).split()
    assert options and all(f"{option}) " in text("scripts/test.sh") for option in options)


def test_pre_commit_checks_what_the_tests_check() -> None:
    (local,) = load(".pre-commit-config.yaml")["repos"]
    (mypy,) = [hook["entry"] for hook in local["hooks"] if hook["id"] == "mypy"]
    folders = re.search(r"for folder in (.+); do", text("scripts/test.sh"))
    assert folders is not None and mypy.split("mypy ")[1] == folders.group(1)


def test_the_citation_names_this_version() -> None:
    citation = load("CITATION.cff")
    assert citation["version"] == __version__
    assert {author["family-names"] for author in citation["preferred-citation"]["authors"]} >= {"Arivazhagan", "Raffel"}


def test_no_test_imports_another() -> None:
    """What two files of tests share is in tests/support, and fixtures are in a conftest.py."""
    pattern = re.compile(r"^(from|import) tests\.(unit|commands)|# noqa:.*\bF811\b", flags=re.MULTILINE)
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__).resolve()]
    assert [str(path) for path in files if pattern.search(path.read_text(encoding="utf-8"))] == []
