"""Writes scripts/lock/*.txt: the versions in .venv and in the environments above it, with their SHA-256 on PyPI.

    LOCK=no scripts/setup.sh --simuleval    # the newest versions that scripts/constraints.txt allows
    LOCK=no scripts/setup.sh --docs
    LOCK=no scripts/test.sh
    .venv/bin/python scripts/lock.py [--torch FILE.whl]

--torch: torch's build for CPUs, which is not on PyPI. scripts/setup.sh installs it if pip finds it (torch-cpu.txt),
else PyPI's build (torch.txt), whose CUDA libraries are installed in the versions of torch's metadata, without hashes.
Each version is listed with its source archive and its wheels for this Python and platform; the lock is for these only.
"""

import argparse
import hashlib
import platform
import re
import sys
import urllib.request
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Dict, Iterable, List, Set

from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
BUILD = ("setuptools", "wheel", "cython", "numpy", "torch")  # what fairseq is built with
LEFT_OUT = {"pip", "fairseq-milk"}
LINK = re.compile(r'href="[^"#]*/([^"#/]+)#sha256=([0-9a-f]{64})"')


def installed(environment: str) -> Dict[str, Distribution]:
    found = distributions(path=[str(ROOT / environment / LIBRARY)])
    by_name = {canonicalize_name(package.metadata["Name"]): package for package in found}
    return {name: package for name, package in sorted(by_name.items()) if name not in LEFT_OUT}


def closure(names: Iterable[str], packages: Dict[str, Distribution]) -> Set[str]:
    """These packages and all installed packages that they require."""
    wanted, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in packages and name not in wanted:
            wanted.add(name)
            requirements = [Requirement(text) for text in packages[name].requires or ()]
            waiting += [canonicalize_name(r.name) for r in requirements if r.marker is None or r.marker.evaluate()]
    return wanted


def fits(filename: str, version: Version) -> bool:
    """Whether a file of PyPI is of this version and for this Python and platform."""
    try:
        if filename.endswith(".whl"):
            _, found, _, tags = parse_wheel_filename(filename)
            return found == version and not tags.isdisjoint(sys_tags())
        return parse_sdist_filename(filename)[1] == version
    except (InvalidSdistFilename, InvalidWheelFilename):
        return False


def published(name: str, version: Version) -> List[str]:
    with urllib.request.urlopen(f"https://pypi.org/simple/{name}/", timeout=60) as response:
        page = response.read().decode("utf-8")
    return sorted({digest for filename, digest in LINK.findall(page) if fits(filename, version)})


def locked(name: str, version: Version, digests: Iterable[str]) -> str:
    """The lines of one package: name==version and the hashes of its files."""
    return " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in digests)]) + "\n"


def locked_from_pypi(name: str, package: Distribution) -> str:
    version = Version(Version(package.version).public)
    digests = published(name, version)
    if not digests:
        raise SystemExit(f"PyPI has no file of {name} {version} for this Python")
    return locked(name, version, digests)


def write(name: str, packages: Iterable[str]) -> None:
    header = f"# {sys.platform} {platform.machine()} {sys.version_info.major}.{sys.version_info.minor}\n"
    text = "".join(packages)
    (ROOT / "scripts" / "lock" / f"{name}.txt").write_text(f"{header}# Written by scripts/lock.py\n{text}")
    print(f"scripts/lock/{name}.txt: {text.count('==')} packages")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write scripts/lock: the versions in .venv with their hashes.")
    parser.add_argument("--torch", type=Path, help="torch's wheel for CPUs")
    torch = parser.parse_args().torch
    packages = installed(".venv")
    build = closure(BUILD, packages) - {"torch"}
    lists = {
        "build": build,
        "torch": {"torch"},
        "main": set(packages) - build - {"torch"},
    }
    for name, chosen in lists.items():
        write(name, (locked_from_pypi(package, packages[package]) for package in sorted(chosen)))
    for extra in ("simuleval", "docs"):
        write(extra, (locked_from_pypi(*package) for package in installed(f".venv-{extra}").items()))
    if torch:
        digest = hashlib.sha256(torch.read_bytes()).hexdigest()
        write("torch-cpu", [locked("torch", parse_wheel_filename(torch.name)[1], [digest])])


if __name__ == "__main__":
    main()
