"""Every way to load a checkpoint, and what to expect of one that is refused."""

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from fairseq import checkpoint_utils

from fairseq_milk.console.errors import UserError
from fairseq_milk.generation import load_model
from fairseq_milk.models.milk_rnmt import MilkRNMT
from tests.support.fairseq_commands import decoding, run, training
from tests.support.verbs import check, stream


def verb(*arguments: Any) -> None:
    """A verb of `fairseq-milk`, whose sentence on standard error becomes a UserError here as well."""
    code, _, err = stream(b"a1 a2\n", *arguments)
    if code:
        raise UserError(err.rstrip("\n"))


def checked(checkpoint: Path, data: Path) -> None:
    """`fairseq-milk check`, which reports what it cannot load as a finding."""
    code, out, err = check(checkpoint, "--data", data, "--subset", "test", "--json")
    first = json.loads(out)["checks"][0]
    assert (code, err) == (1, ""), err
    if first["name"] == "loading":
        raise UserError(first["sentence"])


def interactive(checkpoint: Path, data: Path) -> None:
    (checkpoint.parent / "source").write_text("a1 a2\n")
    run("fairseq-interactive", *decoding(data, checkpoint, "--input", checkpoint.parent / "source"))


def resume(checkpoint: Path, data: Path, *more: Any) -> None:
    save_dir = checkpoint.parent / "save"
    run("fairseq-train", *training(data, save_dir, "--attention", "waitk", "--disable-validation", *more))


def resume_last(checkpoint: Path, data: Path) -> None:
    last = checkpoint.parent / "save" / "checkpoint_last.pt"
    last.parent.mkdir(exist_ok=True)
    last.write_bytes(checkpoint.read_bytes())
    resume(checkpoint, data)


DECODERS: Dict[str, Callable[[Path, Path], object]] = {
    "generate": lambda path, data: run("fairseq-generate", *decoding(data, path)),
    "interactive": interactive,
    "stream": lambda path, data: verb(path, "--data", data),
    "check": checked,
    "python": lambda path, data: load_model(str(path), str(data)),
    "from_pretrained": lambda path, data: MilkRNMT.from_pretrained(str(path.parent), path.name, str(data)),
}
LOADERS: Dict[str, Callable[[Path, Path], object]] = {
    **DECODERS,
    "validate": lambda path, data: run("fairseq-validate", *decoding(data, path, "--batch-size", 8)),
    "fairseq in python": lambda path, data: checkpoint_utils.load_model_ensemble_and_task([str(path)]),
    "resume": resume_last,
    "restore": lambda path, data: resume(path, data, "--restore-file", path),
    "finetune": lambda path, data: resume(path, data, "--finetune-from-model", path),
}


def refused(load: Any, path: Path, data: Path, words: str) -> None:
    """Expect one sentence that names the file."""
    with pytest.raises(UserError, match=words) as error:
        load(path, data)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value) or load is resume_last, error.value  # which names another file
