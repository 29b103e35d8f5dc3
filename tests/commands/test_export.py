"""`fairseq-milk export`, and the commands that take its folder in place of a checkpoint."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any, Tuple
from unittest import mock

import pytest

import fairseq_milk
from fairseq_milk.cli import main
from fairseq_milk.live import exporting, tracing
from fairseq_milk.live.comparison import Comparison
from fairseq_milk.live.tracing import can_trace
from tests.support.fairseq_commands import RNMT, TRANSFORMER, run, training
from tests.support.tiny_translators import Plain, Translators
from tests.support.torch_features import NO_EXPORT, needs_export
from tests.support.verbs import check, stream


def export(*arguments: Any) -> Tuple[int, str, str]:
    """-> exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["export", *map(str, arguments)])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module", params=[RNMT, TRANSFORMER])
def checkpoint(request: Any, translators: Translators) -> Path:
    """A MILk model with BPE."""
    return translators.checkpoint("milk", request.param)


@pytest.fixture(scope="module")
def folder(checkpoint: Path, translators: Translators, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model, exported by the command."""
    if not can_trace():
        pytest.skip(NO_EXPORT)
    out = tmp_path_factory.mktemp("export") / "MODEL"
    arguments = [checkpoint, "--data", translators.corpus.bin, "--out", out, "--sentences", 20]
    code, said, err = export(*arguments)
    assert (code, err) == (0, ""), err
    assert said.startswith(f"exported {out}: 20 of 20 sentences have the checkpoint's tokens and delays; BLEU ")
    assert not out.with_name("MODEL.partial").exists()
    return out


def test_model_json_says_what_it_is(folder: Path) -> None:
    fields = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert (fields["mechanism"], fields["source_language"], fields["target_language"]) == ("milk", "de", "en")
    assert fields["training"]["updates"] == 4 and fields["comparison"]["different"] == 0
    assert {"torch", "onnx", "onnxruntime", "fairseq_milk"} <= set(fields["made_with"])
    assert set(fields["files"]) == {path.name for path in folder.iterdir()} - {"model.json"}
    assert "bpe.codes" in fields["files"]


def test_stream_and_check_take_a_folder(folder: Path, checkpoint: Path, translators: Translators) -> None:
    """A folder gives the same text as its checkpoint."""
    text = "".join(line + "\n" for line in translators.corpus.lines("test", "de", "tok")[:12]).encode()
    limits = ["--max-len-b", 10, "--head-threshold", 0.4]
    assert stream(text, folder, *limits) == stream(text, checkpoint, "--data", translators.corpus.bin, *limits)
    code, out, _ = check(folder, "--data", translators.corpus.bin)
    assert code == 0 and "OK    files" in out and "4 ok" in out
    (folder / "model.json").chmod(0o644)
    code, out, _ = check(translators.corpus.bin)
    assert code == 1 and "is not a complete model of fairseq-milk export" in out


def test_the_python_api_takes_a_folder(folder: Path, checkpoint: Path, translators: Translators) -> None:
    sentence = "der hund lief heim ."
    ours = fairseq_milk.load(folder).translate(sentence, max_len_b=10)
    assert ours == fairseq_milk.load(checkpoint, translators.corpus.bin).translate(sentence, max_len_b=10)


def test_what_cannot_be_exported_is_reported(plain: Plain, folder: Path, tmp_path: Path) -> None:
    model = [plain.checkpoint, "--data", plain.bin]
    code, _, err = export(*model, "--out", folder)
    assert code == 2 and err == f"fairseq-milk export: {folder} exists already: remove it, or choose another --out\n"
    bidirectional = ["--attention", "soft", "--encoder-bidirectional", "--disable-validation"]
    run("fairseq-train", *training(plain.bin, tmp_path / "bi", *bidirectional, max_update=1))
    code, _, err = export(tmp_path / "bi" / "checkpoint_last.pt", "--data", plain.bin, "--out", tmp_path / "OUT")
    assert code == 2 and "its encoder is bidirectional and needs the whole source" in err
    assert not (tmp_path / "OUT").exists()


def test_a_torch_that_cannot_export_is_named(plain: Plain, tmp_path: Path) -> None:
    with mock.patch.object(tracing, "can_trace", lambda: False):
        code, said, err = export(plain.checkpoint, "--data", plain.bin, "--out", tmp_path / "model")
    assert (code, said) == (2, "") and not list(tmp_path.iterdir())
    assert err.startswith("fairseq-milk export: an export needs a newer torch: 2.")


@needs_export
def test_a_model_that_differs_is_not_kept(plain: Plain, tmp_path: Path) -> None:
    """Nothing is left of an export that fails on the way."""
    out = tmp_path / "OUT"
    model = [plain.checkpoint, "--data", plain.bin, "--out", out, "--subset", "test", "--sentences", 3]
    with mock.patch.object(exporting, "compare", return_value=Comparison(3, 1)):
        code, _, err = export(*model)
    assert code == 2 and "not exported: only 2 of 3 sentences have the checkpoint's tokens and delays" in err
    assert list(tmp_path.iterdir()) == []
