"""fairseq_milk as a user has it: a wheel of this tree, installed into an environment of its own outside the clone.

Its dependencies are those of the environment of the tests, in which fairseq_milk is only a link to the clone.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

from tests.support.fairseq_commands import environment

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
COMMAND = "#!{python}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"


class Installed(NamedTuple):
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *command: object, cwd: Path, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """A command with this environment first on the PATH, and nothing of the clone on the path of Python."""
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        variables, words = environment(PATH=path, PYTHONPATH=""), list(map(str, command))
        return subprocess.run(words, cwd=cwd, env=variables, input=stdin, capture_output=True, text=True)


def build_wheel(folder: Path) -> Path:
    """Build a wheel from a copy of the tree, because a build leaves files in its folder and includes earlier ones."""
    copy = folder / "source"
    shutil.copytree(ROOT / "fairseq_milk", copy / "fairseq_milk", ignore=shutil.ignore_patterns("__pycache__"))
    for name in NEEDED:
        shutil.copy(ROOT / name, copy)
    _pip("wheel", copy, "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Installed:
    """An environment with the wheel, and with the packages and commands of this one but fairseq_milk."""
    venv.EnvBuilder(symlinks=True).create(folder)
    installed = Installed(folder)
    _pip("--python", installed.python, "install", "--no-deps", "--no-index", wheel)
    (library,) = folder.glob("lib/*/site-packages")
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")  # its own .pth files are not read
    for point in entry_points(group="console_scripts"):
        script = folder / "bin" / point.name
        if not script.exists():
            script.write_text(COMMAND.format(python=installed.python, module=point.module, function=point.attr))
            script.chmod(0o755)
    return installed


def _pip(*arguments: object) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *quiet, *map(str, arguments)], check=True, timeout=800)
