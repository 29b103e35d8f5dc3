"""`fairseq-milk serve` as a command: what it says, what it refuses, and how it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List

import pytest

from fairseq_milk.cli import main
from fairseq_milk.cli.serve import name_models, read_examples
from fairseq_milk.console.errors import UserError
from tests.support.servers import client

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from fairseq_milk.cli import main, serve
from tests.support.stand_in_translators import stand_in
serve.load = lambda path, data, text: stand_in("waitk" if "wait" in path else "milk", seconds=7 * ("busy" in path))
sys.exit(main(["serve", *sys.argv[1:]]))
"""


@contextmanager
def server(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The command with stand-ins for its models."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: "subprocess.Popen[str]", count: int) -> List[str]:
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def test_it_says_what_it_serves_and_to_whom_and_ends_cleanly_on_sigterm(tmp_path: Path) -> None:
    with server("--port", "0", str(tmp_path / "milk"), f"slow={tmp_path / 'wait'}") as process:
        milk, wait, address = lines(process, 3)
        assert milk == "milk: de-en milk, a toy" and wait == "slow: de-en waitk, a toy"
        url, words = address.split("  ")
        assert url.startswith("http://127.0.0.1:") and words == (
            "(this machine only; --host 0.0.0.0 opens it to the network)"
        )
        with client(url) as connection:
            assert connection.say(["er"], ["slow"])["slow"][-1]["text"] == "he"
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 0
        assert process.stderr is not None and process.stderr.read() == ""


def test_it_ends_cleanly_also_while_a_word_takes_longer_than_it_waits(tmp_path: Path) -> None:
    with server("--port", "0", str(tmp_path / "busy")) as process:
        url = lines(process, 2)[1].split("  ")[0]
        with client(url) as connection:
            connection.send(type="begin", sentence=1)
            connection.send(type="push", text="er hat das buch")
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert process.stderr is not None and "Traceback" not in process.stderr.read()


def test_ctrl_c_and_an_open_address(tmp_path: Path) -> None:
    with server("--host", "0.0.0.0", "--port", "0", str(tmp_path / "milk")) as process:
        assert "open to everyone who can reach this address" in lines(process, 2)[1]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None and "Traceback" not in process.stderr.read()


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["serve", *arguments]) == 2
    return capsys.readouterr().err


def test_bad_arguments_are_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "there is no" in failure(capsys, str(tmp_path / "nothing"))
    assert "--idle must be above 0" in failure(capsys, "--idle", "0", "x")
    assert "--threads must be above 0" in failure(capsys, "--threads", "0", "x")
    assert "two models are called a" in failure(capsys, "a=x", "a=y")
    assert "--origin must be like" in failure(capsys, "--origin", "x", "x")
    assert "nothing.txt" in failure(capsys, "--examples", "nothing.txt", "x")


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with server("--port", str(taken.getsockname()[1]), str(tmp_path / "milk")) as process:
            assert process.wait(60) == 2
            assert process.stderr is not None and "cannot listen on 127.0.0.1" in process.stderr.read()


def test_models_are_named_after_their_folders(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run" / "checkpoint_best.pt"
    checkpoint.parent.mkdir()
    checkpoint.touch()
    odd = tmp_path / "a=b"
    odd.mkdir()
    assert name_models([str(checkpoint), "x=y=z", str(odd)]) == {"run": str(checkpoint), "x": "y=z", "a=b": str(odd)}


def test_examples_are_lines_that_are_sentences(tmp_path: Path) -> None:
    file = tmp_path / "examples"
    file.write_text("\n er hat \n" + "x " * 201 + "\n" + "sie\n" * 20, encoding="utf-8")
    assert read_examples(str(file), 200) == ["er hat", *["sie"] * 11]
    file.write_bytes(b"\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        read_examples(str(file), 200)
