"""The version of fairseq_milk that is recorded with results."""

import subprocess
from functools import cache
from pathlib import Path

from ..version import __version__

HERE = Path(__file__).resolve().parent


@cache
def source_version() -> str:
    """The version, with the commit if run from a clone: 0.1.0+2f9ae97c1b2d, and -dirty if files were changed."""
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)  # fails if the repository is another one
        return f"{__version__}+{_git('describe', '--always', '--dirty', '--abbrev=12', '--exclude=*')}"
    except (OSError, subprocess.SubprocessError):
        return __version__


def _git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=HERE, stderr=subprocess.DEVNULL, text=True).strip()
