"""`fairseq-milk stream`: translation that appears while the source is still being sent."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator
from unittest import mock

import torch

from fairseq_milk.live.lines import characters, emit, words
from tests.support.fairseq_commands import ROOT, environment, run
from tests.support.generate_output import hypotheses
from tests.support.tiny_translators import Plain, Translators
from tests.support.verbs import stream

COMMAND = [sys.executable, "-c", "import sys; from fairseq_milk.cli import main; sys.exit(main())", "stream"]


# ---- text --------------------------------------------------------------------------------------------------------


def test_a_stream_gives_what_generate_gives(translators: Translators) -> None:
    """The input is split by BPE and the output is whole words; one output line per input line, empty or not."""
    generated = hypotheses(run("fairseq-generate", *translators.decoding("milk", "--remove-bpe")).stdout)
    source = translators.corpus.lines("test", "de", "tok")
    text = "".join(line + "\n" for line in source).encode()
    model = [translators.checkpoint("milk"), "--data", translators.corpus.bin, "--max-len-b", 10]
    code, out, err = stream(text, *model)
    assert code == 0 and err == ""
    want = [generated[i] if line else "" for i, line in enumerate(source)]
    assert [line.split() for line in out.split("\n")[:-1]] == [line.split() for line in want]


def test_strange_input(plain: Plain) -> None:
    """Spaces of all kinds, invalid UTF-8, a command as a word, no newline at the end."""
    text = b"  a1\ta2\xc2\xa0a3 \r\n\n\xff\xfe </s> a1 \x00\nlast"
    code, out, err = stream(text, plain.checkpoint, "--data", plain.bin, "--max-len-b", 4, "--verbose")
    assert code == 0 and out.count("\n") == 4 and out.endswith("\n")
    assert re.findall(r"^READ  (.*)$", err, flags=re.MULTILINE) == [
        "a1", "a2", "a3", "</s>", "\ufffd\ufffd", "</s>", "a1", "\x00", "</s>", "last", "</s>",
    ]  # fmt: skip
    assert "WRITE " in err
    assert stream(b"", plain.checkpoint, "--data", plain.bin)[:2] == (0, "")


def test_words_and_characters() -> None:
    assert list(words("one  two\n\nthr")) == ["one", "two", None, None, "thr"]
    reader, writer = os.pipe()
    os.write(writer, "größe".encode()[:3])
    arriving = characters(reader)
    assert next(arriving) == "g" and next(arriving) == "r"
    os.write(writer, "größe".encode()[3:] + b"\xc3")
    os.close(writer)
    assert "".join(arriving) == "öße\ufffd"
    os.close(reader)


# ---- errors ------------------------------------------------------------------------------------------------------


def test_bad_input_is_reported_in_a_sentence(plain: Plain, translators: Translators, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pt"
    garbage.write_bytes(b"no checkpoint")
    other = tmp_path / "other.pt"
    torch.save({"some": "tensors"}, other)
    data = ["--data", plain.bin]
    for arguments, sentence in [
        (["nowhere.pt", *data], "there is no checkpoint nowhere.pt"),
        ([garbage, *data], f"{garbage} is no checkpoint, or only a part of one: "),
        ([other, *data], f"{other} is no checkpoint of fairseq-train: it has no parameters"),
        ([plain.checkpoint, "--data", tmp_path / "none"], "there is no data directory"),
        ([plain.checkpoint, "--data", translators.corpus.bin], "the checkpoint does not fit the dictionaries"),
        ([plain.checkpoint, *data, "--head-threshold", 2], "--head-threshold must lie between 0 and 1, got 2.0"),
        ([plain.checkpoint, *data, "--head-threshold", 0.2], "--head-threshold is for models with a learned head"),
        ([plain.checkpoint, *data, "--bpe-codes", "nowhere"], "there is no file of BPE codes nowhere"),
    ]:
        code, out, err = stream(b"a1\n", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("fairseq-milk stream: ") and sentence in err


# ---- while it arrives --------------------------------------------------------------------------------------------


def heeds_ctrl_c() -> None:
    """Restore the default action of SIGINT, which a command in the background of a script ignores."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def process(plain: Plain, **streams: Any) -> Iterator["subprocess.Popen[bytes]"]:
    arguments = [*COMMAND, str(plain.checkpoint), "--data", str(plain.bin), "--max-len-b", "3", "--decode-k", "2"]
    buffered = environment(PYTHONUNBUFFERED="")  # or Python would flush by itself
    running = subprocess.Popen(arguments, env=buffered, cwd=ROOT, preexec_fn=heeds_ctrl_c, **streams)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def arrives(fd: int, timeout: float = 120.0) -> bytes:
    """The next piece of output."""
    assert select.select([fd], [], [], timeout)[0], "nothing came"
    return os.read(fd, 65536)


def test_words_appear_while_the_sentence_is_being_sent(plain: Plain) -> None:
    """Character by character; a second sentence; then Ctrl-C."""
    pipe = subprocess.PIPE
    with process(plain, stdin=pipe, stdout=pipe, stderr=pipe) as running:
        assert running.stdin and running.stdout and running.stderr
        out = running.stdout.fileno()
        for character in b"a1 a2 ":
            running.stdin.write(bytes([character]))
            running.stdin.flush()
        first = arrives(out)
        assert len(first.split()) == 1 and b"\n" not in first
        running.stdin.write(b"a3 ")
        running.stdin.flush()
        second = arrives(out)
        assert len(second.split()) == 1 and second.startswith(b" ")
        running.stdin.write(b"\na1 a2\n")
        running.stdin.flush()
        rest = b""
        while rest.count(b"\n") < 2:
            rest += arrives(out)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        assert b"Traceback" not in running.stderr.read()


def test_a_closed_pipe_ends_it(plain: Plain) -> None:
    pipe = subprocess.PIPE
    with process(plain, stdin=pipe, stdout=pipe, stderr=pipe) as running:
        assert running.stdin and running.stdout and running.stderr
        running.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            for _ in range(50):
                running.stdin.write(b"a1 a2 a3\n")
                running.stdin.flush()
            running.stdin.close()
        assert running.wait(120) == 0
        errors = running.stderr.read()
        assert b"Traceback" not in errors and b"BrokenPipe" not in errors


def test_json_lines(plain: Plain) -> None:
    """Each READ and WRITE as a line with its time, and each sentence with its tokens, delays and latency."""
    model = [plain.checkpoint, "--data", plain.bin, "--max-len-a", 1, "--max-len-b", 2, "--json"]
    code, out, err = stream(b"a1 a2 a3\n\na1\n", *model)
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    first = [line for line in lines if line["sentence"] == 1]
    assert [line["text"] for line in first if line["action"] == "READ"] == ["a1", "a2", "a3", "</s>"]
    writes, end = [line for line in first if line["action"] == "WRITE"], first[-1]
    assert "".join(line["text"] for line in writes) == end["text"] and end["action"] == "END"
    assert [line["delay"] for line in writes] == end["delays"][:-1] and end["latency"]["DAL"] > 0
    times = [line["time"] for line in lines]
    assert times == sorted(times) and lines[-1]["sentence"] == 3
    assert [line for line in lines if line["sentence"] == 2] == [
        {**lines[len(first)], "action": "END", "text": "", "tokens": [], "delays": [], "latency": None}
    ]
    assert stream(b"a1 a2 a3\n", *model[:-1])[1].strip() == end["text"].strip()


def test_pipes_that_do_not_block() -> None:
    """The command waits for input that has not arrived, and writes all of its output to a slow reader."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)

    def send() -> None:
        with open(writer, "wb") as pipe:
            pipe.write("süß ".encode())

    later = threading.Timer(0.3, send)
    later.start()
    assert list(words(characters(reader))) == ["süß"]
    later.join()
    os.close(reader)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    text, taken = "wort " * 100_000, []

    def take() -> None:
        with open(reader, "rb") as pipe:
            taken.append(pipe.read())

    taker = threading.Timer(0.3, take)
    taker.start()
    with open(writer, "w", encoding="utf-8") as out, mock.patch.object(sys, "stdout", out):
        emit(text)
    taker.join()
    assert taken == [text.encode()]
