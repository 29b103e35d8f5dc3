"""scripts/setup.sh with a Python whose venv and pip are stand-ins: two set-ups at once, and installing by the lock."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
HERE = f"linux x86_64 {sys.version_info.major}.{sys.version_info.minor}"
# A stand-in for Python: `-m venv` copies it, and its pip takes 0.3 seconds and logs what it is asked to install.
PYTHON = """#!/usr/bin/env bash
case "$*" in
  *"-m venv"*) mkdir -p "${{@: -1}}/bin" && cp "$0" "${{@: -1}}/bin/python" ;;
  *"-m pip install"*) echo "begin $*" >>{log}; sleep 0.3; echo end >>{log} ;;
  *"-c import fairseq"*) ;;
  *sys._base_executable*) echo "$0" ;;
  *) exec {python} "$@" ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that set-up reads, and the stand-in at `python`; a lock for the Python that runs this."""
    shutil.copytree(ROOT / "scripts", tmp_path / "clone" / "scripts")
    shutil.copy(ROOT / "setup.py", tmp_path / "clone")
    build = tmp_path / "clone" / "scripts" / "lock" / "build.txt"
    build.write_text(f"# {HERE}\n" + build.read_text().partition("\n")[2])
    python = tmp_path / "python"
    python.write_text(PYTHON.format(log=tmp_path / "log", python=sys.executable))
    python.chmod(stat.S_IRWXU)
    return tmp_path / "clone"


def start(clone: Path, **variables: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHON": str(clone.parent / "python"), "CXX": "true", **variables}
    return subprocess.Popen(
        ["bash", str(clone / "scripts" / "setup.sh")], env=environment, text=True, stdout=-1, stderr=subprocess.STDOUT
    )


def said(process: "subprocess.Popen[str]") -> str:
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    return str(output)


def log(clone: Path) -> List[str]:
    return (clone.parent / "log").read_text().splitlines()


def test_two_at_once_take_turns(clone: Path) -> None:
    first, second = start(clone), start(clone)
    both = said(first) + said(second)
    assert "another set-up is running here: waiting for it" in both and both.count("set up in") == 2
    lines = log(clone)
    assert [line.split()[0] for line in lines] == ["begin", "end"] * (len(lines) // 2)
    assert sum("-e" in line.split() for line in lines) == 1  # the second one found everything done


def test_the_lock_is_used_with_hashes(clone: Path) -> None:
    said(start(clone))
    locked = [re.findall(r"lock/(\S+)\.txt", line) for line in log(clone) if "--require-hashes" in line]
    assert locked == [["build"], ["torch-cpu"], ["main"]]


@pytest.mark.parametrize("variables", [{"TORCH_VERSION": "2.4.1"}, {"LOCK": "no"}, {}])
def test_where_the_lock_does_not_apply_the_constraints_do(clone: Path, variables: Dict[str, str]) -> None:
    if not variables:
        (clone / "scripts" / "lock" / "build.txt").write_text("# linux x86_64 3.99\n")
    assert "versions by scripts/constraints.txt" in said(start(clone, **variables))
    assert not any("--require-hashes" in line for line in log(clone))


def pinned(name: str) -> Dict[str, str]:
    text = (ROOT / "scripts" / "lock" / f"{name}.txt").read_text()
    for package in re.split(r"\n(?=\S)", text.strip())[2:]:
        assert re.fullmatch(r"[\w.-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", package), package
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE))


def test_the_lock_has_what_setup_py_asks_for() -> None:
    """If this is red, a dependency was added: see "Renewing the lock" in CONTRIBUTING.md."""
    declared: Dict[str, object] = {}
    source = (ROOT / "setup.py").read_text().replace("from setuptools import find_packages, setup", "")
    exec(source, {"setup": declared.update, "find_packages": lambda **_: [], "__file__": str(ROOT / "setup.py")})
    extras = declared["extras_require"]
    assert isinstance(extras, dict) and isinstance(declared["install_requires"], list)
    versions = {**pinned("build"), **pinned("torch"), **pinned("main")}
    wanted = {"main": [*declared["install_requires"], *extras["test"]]}
    wanted.update({extra: extras[extra] for extra in ("simuleval", "docs")})
    environment = {"python_version": "3.11", "python_full_version": "3.11.7", "sys_platform": "linux"}
    for name, requirements in wanted.items():
        found = versions if name == "main" else pinned(name)
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate(environment):
                version = found.get(requirement.name.lower().replace("_", "-"))
                assert version and version in SpecifierSet(str(requirement.specifier)), f"{requirement} in {name}.txt"
