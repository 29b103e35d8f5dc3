"""Text of all kinds: invalid UTF-8, control characters, every script, words and lines of any length."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairseq_milk.cli import main
from fairseq_milk.console.errors import UserError
from fairseq_milk.live.lines import words
from tests.support.fairseq_commands import decoding, environment, run, training
from tests.support.tiny_translators import Plain
from tests.support.verbs import check, stream

SCRIPTS = [
    "שלום",
    "مرحبا",
    "e\u0301\u0323",
    "\u202eabc\u202c",
    "क्षि",
    "👩‍👩‍👧",
    "ﬁ",
    "\ufeff",
    "a\u200bb",
]  # right to left, combining, ...
CONTROL = ["\x00", "a\x01b", "\x1b[31m", "\x7fx", "\x08"]
STRANGE = [*SCRIPTS, *CONTROL, "<s>", "</s>", "<pad>", "<unk>", "@@", "x@@", "▁", "x" * 100_000]


def read_words(err: str) -> List[str]:
    return re.findall(r"^READ  (.*)$", err, flags=re.MULTILINE)


# ---- stream -----------------------------------------------------------------------------------------------------


def test_a_stream_of_every_script(plain: Plain) -> None:
    """One output line per input line; words are read unchanged."""
    lines = STRANGE
    text = "".join(f"{line} a1\n" for line in lines)
    code, out, err = stream(text.encode(), plain.checkpoint, "--data", plain.bin, "--max-len-b", 3, "--verbose")
    assert code == 0 and out.count("\n") == len(lines)
    assert read_words(err) == [word for line in lines for word in (line, "a1", "</s>")]


def test_bytes_that_are_no_text(plain: Plain) -> None:
    data = bytes(range(256)).replace(b"\n", b"") * 3
    code, out, err = stream(data + b"\na1\n", plain.checkpoint, "--data", plain.bin, "--max-len-b", 3)
    assert (code, err, out.count("\n")) == (0, "", 2)


def test_windows_lines_and_blank_lines(plain: Plain) -> None:
    arguments = [plain.checkpoint, "--data", plain.bin, "--max-len-b", 3]
    unix = b"a1 a2\n\n\na3\n   \na4 a5 a6\n"
    code, out, _ = stream(unix, *arguments)
    assert code == 0 and [bool(line) for line in out.split("\n")] == [True, False, False, True, False, True, False]
    assert stream(unix.replace(b"\n", b"\r\n"), *arguments)[1] == out


@pytest.mark.parametrize("tokens", [0, 1, int(os.environ.get("LONG_LINE", "1000"))])
def test_lines_of_any_length(tokens: int, plain: Plain) -> None:
    """A line after a very long one is translated as usual.  LONG_LINE=10000 makes it longer."""
    line = ("a1 " * tokens).encode() + b"\n"
    limits = ["--max-len-a", 0, "--max-len-b", 5]
    code, out, _ = stream(line + b"a1 a2\n", plain.checkpoint, "--data", plain.bin, *limits)
    first, second = out.split("\n")[:-1]
    assert code == 0 and bool(first) == bool(tokens)
    assert second == stream(b"a1 a2\n", plain.checkpoint, "--data", plain.bin, *limits)[1].rstrip("\n")


@given(st.text())
@example("a\x7f\x7f\x7fb \x85\u2028c\r\rd")
def test_words_of_any_text(text: str) -> None:
    """Each newline gives None; no word is empty, contains a space or is lost."""
    found = list(words(text))
    assert found.count(None) == text.count("\n")
    assert all(word and len(word.split()) == 1 for word in found if word is not None)
    assert [word for word in found if word is not None] == text.split()


# ---- fairseq's commands -----------------------------------------------------------------------------------------


def preprocess(folder: Path, sides: Tuple[bytes, bytes], plain: Plain, split: str = "test") -> Path:
    for language, side in zip(("de", "en"), sides):
        (folder / f"text.{language}").write_bytes(side)
    dictionaries = ["--srcdict", plain.bin / "dict.de.txt", "--tgtdict", plain.bin / "dict.en.txt"]
    into = ["-s", "de", "-t", "en", f"--{split}pref", folder / "text", "--destdir", folder / "bin"]
    run("fairseq-preprocess", *into, *dictionaries)
    return folder / "bin"


def test_generate_and_score_take_every_script(plain: Plain, tmp_path: Path) -> None:
    """With a dictionary made from such text, so that the words are known."""
    known = [*SCRIPTS, *CONTROL]
    lines = [" ".join(known), *known, "", "a1", "\x0b\x0c", *["a1 a2"] * 3]
    text = "".join(line + "\r\n" for line in lines).encode()
    for language in ("de", "en"):
        (tmp_path / f"text.{language}").write_bytes(text)
    splits = [f"--{split}pref={tmp_path / 'text'}" for split in ("train", "valid", "test")]
    run("fairseq-preprocess", "-s", "de", "-t", "en", *splits, "--destdir", tmp_path / "bin")
    more = ["--attention", "milk", "--disable-validation"]
    run("fairseq-train", *training(tmp_path / "bin", tmp_path / "model", *more, max_update=2))
    path, results = tmp_path / "model" / "checkpoint_last.pt", tmp_path / "results"
    run("fairseq-generate", *decoding(tmp_path / "bin", path, "--results-path", results, "--max-len-b", 4))
    records = [json.loads(line) for line in (results / "generate-test.jsonl").read_text("utf-8").split("\n")[:-1]]
    assert [record["id"] for record in records] == list(range(len(lines)))
    assert [records[i]["source"] for i in range(1, len(known) + 1)] == [[word] for word in known]
    assert records[len(known) + 1]["source"] == [] and records[len(known) + 3]["source"] == []
    for name in ("generate-test.jsonl", "generate-test.txt"):
        code, out, err = scored(results / name)
        assert code == 0 and f"{len(lines)} sentences" in out and "DAL" in out, err


def test_sides_of_different_lengths(plain: Plain, tmp_path: Path) -> None:
    data = preprocess(tmp_path, (b"a1\na2\na3\n", b"b1\nb2\n"), plain, "train")
    with pytest.raises(UserError, match="the data set 'train' in .* Source and target must contain the same number"):
        run("fairseq-train", *training(data, tmp_path / "save", "--disable-validation", "--valid-subset", "train"))
    data = preprocess(tmp_path, (b"a1\na2\na3\n", b"b1\nb2\n"), plain)
    with pytest.raises(UserError, match="the data set 'test' in .* Source and target must contain the same number"):
        run("fairseq-generate", *decoding(data, plain.checkpoint))


def test_a_line_that_is_too_long_is_named(plain: Plain, tmp_path: Path) -> None:
    data = preprocess(tmp_path, (b"a1\n" + b"a2 " * 10_000 + b"\n", b"b1\nb2\n"), plain)
    with pytest.raises(UserError, match="sample #1 is invalid .* --skip-invalid-size-inputs-valid-test") as error:
        run("fairseq-generate", *decoding(data, plain.checkpoint))
    assert "\n" not in str(error.value)
    done = run("fairseq-generate", *decoding(data, plain.checkpoint, "--skip-invalid-size-inputs-valid-test"))
    assert re.findall(r"^H-(\d+)", done.stdout, flags=re.MULTILINE) == ["0"]


def test_interactive_refuses_a_file_that_is_no_text(plain: Plain, tmp_path: Path) -> None:
    """The file is refused before any of its lines is translated."""
    (tmp_path / "source").write_bytes(b"a1 a2\na1 \xff\n")
    arguments = decoding(plain.bin, plain.checkpoint, "--input", tmp_path / "source")
    with pytest.raises(UserError, match="--input .*source: line 2 is not UTF-8"):
        run("fairseq-interactive", *arguments)
    with pytest.raises(UserError, match="--input .*nowhere cannot be read: No such file"):
        run("fairseq-interactive", *decoding(plain.bin, plain.checkpoint, "--input", tmp_path / "nowhere"))


def test_interactive_replaces_invalid_utf8_from_a_pipe(plain: Plain) -> None:
    with subprocess.Popen(
        ["fairseq-interactive", *map(str, decoding(plain.bin, plain.checkpoint, "--max-len-b", 3))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # As in most locales; in the C locale Python replaces invalid bytes by itself.
        env=environment(PYTHONIOENCODING="utf-8:strict"),
    ) as process:
        out, err = process.communicate(b"a1 a2\na1 \xff\xfe\na3\n")
    assert process.returncode == 0, err
    assert re.findall(rb"^S-\d\t(.*)", out, flags=re.MULTILINE) == [b"a1 a2", b"a1 <unk>", b"a3"]


# ---- score ------------------------------------------------------------------------------------------------------


def scored(path: Path) -> Tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["score", str(path), "--bootstrap", "2"])
    return code, out.getvalue(), err.getvalue()


LINE = (
    b'{"id": 0, "source": ["a", "b"], "hypothesis": ["c"], "delays": [1, 3], "reference": ["c"], '
    b'"attention": [[1], [0.5, 0, 0.5]], "text": "c", "reference_text": "c"}\n'
)
LOG = b"S-0\ta b\nT-0\tc\nH-0\t-0.5\tc\nD-0\t-0.5\tc\nI-0\t1 3\n"


@given(whole=st.sampled_from((LINE, LOG)), at=st.integers(0, 165), less=st.integers(0, 5), more=st.binary(max_size=6))
@example(whole=LINE, at=7, less=0, more=b"[" * 100_000)
@example(whole=LINE, at=0, less=0, more=b"\xff\xfe")
@example(whole=LINE, at=57, less=1, more=b"1e999")
@example(whole=LINE, at=40, less=0, more=b"\x00")
@example(whole=LINE, at=LINE.index(b'"c", "reference_text'), less=3, more=b"5")
@example(whole=LINE, at=LINE.rindex(b'"c"'), less=3, more=b"[]")
@example(whole=LOG, at=2, less=0, more=b"1" * 5000)
def test_a_damaged_file_is_scored_or_refused(
    whole: bytes, at: int, less: int, more: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random bytes of the file are replaced: one sentence that names the file, no traceback."""
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(whole[:at] + more + whole[at + less :])
    code, _, err = scored(path)
    assert code == 0 or (code == 2 and err.count("\n") == 1 and str(path) in err), err


@pytest.mark.parametrize(
    "field, value",
    [
        ("text", "5"),
        ("reference_text", '["c"]'),
        ("attention", '"x"'),
        ("attention", "[1, 2]"),
        ("attention", '[[1], [0.5, "a"]]'),
        ("attention", "[[1], [NaN, 0.5]]"),
        ("attention", f"[[1{'0' * 400}]]"),
    ],
)
def test_a_field_of_another_type(field: str, value: str, tmp_path: Path) -> None:
    """A field of the wrong type is refused by every reader, also by those that do not use it."""
    path = tmp_path / "wrong.jsonl"
    whole = json.loads(LINE)
    del whole[field]
    path.write_text(f'{json.dumps(whole)[:-1]}, "{field}": {value}}}\n')
    report, plot = str(tmp_path / "report.html"), str(tmp_path / "plot.svg")
    for arguments in (
        ["score", str(path)],
        ["report", str(path), "--out", report],
        ["plot", "schedule", str(path), "--sentence", "0", "--out", plot],
    ):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            code = main(arguments)
        assert (code, err.getvalue().count("\n")) == (2, 1), err.getvalue()
        assert f"{path}, line 1: '{field}' must be" in err.getvalue()
    assert [file.name for file in tmp_path.iterdir()] == ["wrong.jsonl"]


# ---- data and codes ---------------------------------------------------------------------------------------------


def cut(folder: Path, ending: str, size: int) -> None:
    for path in folder.glob(f"*.de.{ending}"):
        path.write_bytes(path.read_bytes()[:size])


DAMAGE: Dict[str, Tuple[Callable[[Path], object], str]] = {
    "dictionary without counts": (lambda data: (data / "dict.de.txt").write_text("a1\n"), "dict.de.txt"),
    "dictionary that is no text": (lambda data: (data / "dict.de.txt").write_bytes(b"\xff\xfe 1\n"), "dict.de.txt"),
    "dictionary with a word twice": (lambda data: (data / "dict.de.txt").write_text("a 1\na 1\n"), "dict.de.txt"),
    "index cut at its beginning": (lambda data: cut(data, "idx", 20), "test.de-en.de.idx"),
    "index cut at its end": (lambda data: cut(data, "idx", -8), "test.de-en.de.idx"),
    "data cut": (lambda data: cut(data, "bin", -4), "test.de-en.de.bin"),
    "data empty": (lambda data: cut(data, "bin", 0), "test.de-en.de.bin"),
}


@pytest.mark.parametrize("damage, name", DAMAGE.values(), ids=DAMAGE)
def test_damaged_data_is_named(damage: Any, name: str, plain: Plain, tmp_path: Path) -> None:
    data = tmp_path / "bin"
    shutil.copytree(plain.bin, data)
    damage(data)
    with pytest.raises(UserError, match=re.escape(str(data / name))) as error:
        run("fairseq-generate", *decoding(data, plain.checkpoint))
    assert "\n" not in str(error.value)
    train = ["--train", *training(data, tmp_path / "save", "--train-subset", "test")]
    for arguments in (train, [plain.checkpoint, "--data", data, "--subset", "test"]):
        code, out, err = check("--json", *arguments)
        (finding,) = json.loads(out)["checks"]
        assert (code, err, finding["name"], finding["status"]) == (1, "", "loading", "fail"), (out, err)
        assert str(data / name) in finding["sentence"] and "\n" not in finding["sentence"]


@pytest.mark.parametrize(
    "codes, words",
    [
        (b"#version: 0.2\na b\na b c\n", "invalid line 3 in BPE codes file: a b c"),
        (b"", "invalid line 1"),
        (b"#version: 0.2\na \xff\n", "line 2 is not UTF-8"),
        (b"#version: x\na b\n", "invalid literal"),
    ],
)
def test_invalid_bpe_codes(
    codes: bytes,
    words: str,
    plain: Plain,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "codes"
    path.write_bytes(codes)
    code, out, err = stream(b"a1\n", plain.checkpoint, "--data", plain.bin, "--bpe-codes", path)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert str(path) in err and words in err
    assert capsys.readouterr().err == ""
