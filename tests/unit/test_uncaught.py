"""How an uncaught `UserError` ends a process."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_milk.console.errors import UserError
from fairseq_milk.console.uncaught import is_command, sentence_of

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.uncaught import is_command, print_user_errors
if is_command("fairseq-", "fairseq_cli"):
    print_user_errors()
raise {{}}
"""


def run(path: Path, error: str) -> "subprocess.CompletedProcess[str]":
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROGRAM.format(error))
    return subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["fairseq-train", "fairseq_cli/train.py"])
def test_a_command_ends_with_the_sentence(tmp_path: Path, name: str) -> None:
    done = run(tmp_path / name, 'UserError("--noise must be positive, got -1")')
    assert done.returncode == 1 and done.stderr == "--noise must be positive, got -1\n" and not done.stdout


def test_other_errors_keep_their_traceback(tmp_path: Path) -> None:
    done = run(tmp_path / "fairseq-train", 'ValueError("a bug")')
    assert done.returncode == 1 and done.stderr.startswith("Traceback") and "ValueError: a bug" in done.stderr


def test_a_script_keeps_its_traceback(tmp_path: Path) -> None:
    done = run(tmp_path / "experiment.py", 'UserError("there is no file")')
    assert done.returncode == 1 and done.stderr.startswith("Traceback")
    assert done.stderr.endswith("UserError: there is no file\n")


def test_user_errors_are_ordinary_exceptions() -> None:
    assert issubclass(UserError, ValueError) and not issubclass(UserError, SystemExit)
    assert not is_command("fairseq-", "simuleval")


def test_the_error_of_a_spawned_process() -> None:
    """torch.multiprocessing puts the traceback of its process into the message of its own error."""
    message = (
        "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n"
        '  File "train.py", line 1, in <module>\nfairseq_milk.console.errors.UserError: there is no data set\n'
    )
    assert sentence_of(RuntimeError(message)) == "there is no data set"
    assert sentence_of(RuntimeError("UserError: something else")) is None and sentence_of(KeyError()) is None
