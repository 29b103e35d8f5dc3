"""`fairseq-milk check` on real files: checkpoints, the arguments of a training, and invalid input."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
import torch

from fairseq_milk.checks.table import CHECKS
from tests.support.fairseq_commands import training
from tests.support.tiny_translators import Plain, Translators
from tests.support.verbs import check


def statuses(report: Dict[str, Any], status: str) -> List[str]:
    return [finding["name"] for finding in report["checks"] if finding["status"] == status]


def less_hasty(checkpoint: Path, to: Path) -> Path:
    """The same model with a head that waits longer: it would write nine tenths of the target after one source token."""
    state = torch.load(checkpoint)
    state["model"]["decoder.attention.head.r"] -= 0.1
    torch.save(state, to)
    return to


def test_a_sound_checkpoint(translators: Translators, tmp_path: Path) -> None:
    checkpoint = less_hasty(translators.checkpoint("milk"), tmp_path / "checkpoint.pt")
    arguments = [checkpoint, "--data", translators.corpus.bin]
    code, out, err = check(*arguments, "--json")
    report = json.loads(out)
    assert (code, err) == (0, "") and report["passed"] and statuses(report, "fail") == [], out
    assert [finding["name"] for finding in report["checks"]] == list(CHECKS)
    assert "--latency-weight 0" in report["checks"][list(CHECKS).index("gradient")]["sentence"], "as it was trained"
    code, text, err = check(*arguments)
    assert (code, err) == (0, "")
    lines = text.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == list(CHECKS)
    assert [line.split(None, 2)[2] for line in lines[:-1]] == [finding["sentence"] for finding in report["checks"]]
    assert " ok" in lines[-1] and lines[-1].endswith("seconds")


def test_a_checkpoint_that_is_not(plain: Plain) -> None:
    """A model that never predicts EOS: the references are very unlikely."""
    code, out, err = check(plain.checkpoint, "--data", plain.bin, "--subset", "test", "--json")
    report = json.loads(out)
    assert (code, err) == (1, "") and not report["passed"] and statuses(report, "fail") == ["likelihood"]
    assert statuses(report, "skip") == ["gradient", "mass", "agreement", "policy"]


def test_a_training_before_it_begins(plain: Plain, tmp_path: Path) -> None:
    save_dir = tmp_path / "checkpoints"
    arguments = training(plain.bin, save_dir, "--attention", "mocha", "--latency-weight", 0.1)
    code, out, err = check("--json", "--train", *arguments)
    report = json.loads(out)
    assert (code, err) == (0, ""), out + err
    assert statuses(report, "skip") == ["likelihood", "policy"] and statuses(report, "warn") == []
    assert not save_dir.exists()
    warned = training(plain.bin, save_dir, "--attention", "milk", "--published-alignment", "--max-source-positions", 5)
    code, out, err = check("--train", *warned)
    assert code == 1 and "--latency-weight 0" in out and "FAIL  lengths" in out, out


class Payload:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def test_what_cannot_be_checked(plain: Plain, tmp_path: Path) -> None:
    mark, malicious, cut = tmp_path / "mark", tmp_path / "malicious.pt", tmp_path / "cut.pt"
    torch.save({"model": Payload(mark)}, malicious)
    cut.write_bytes(plain.checkpoint.read_bytes()[:1000])
    data = ["--data", plain.bin]
    other = ["--train", plain.bin, "--arch", "lstm", "--task", "translation"]
    for arguments, sentence in (
        ([], "give a checkpoint and its --data DIR"),
        ([plain.checkpoint], "give a checkpoint and its --data DIR"),
        ([*data, "--train", plain.bin, "--arch", "milk_rnmt"], "give one or the other"),
    ):
        code, out, err = check(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), (arguments, out, err)
        assert err.startswith("fairseq-milk check: ") and sentence in err
    smaller = tmp_path / "smaller"
    shutil.copytree(plain.bin, smaller)
    (smaller / "dict.de.txt").write_text("a1 1\n")
    cases: List[Tuple[List[Any], str]] = [
        ([plain.checkpoint, "--data", smaller], "does not fit the dictionaries"),
        (["nowhere.pt", *data], "there is no checkpoint nowhere.pt"),
        ([malicious, *data], f"{malicious}"),
        ([cut, *data], f"{cut}"),
        ([plain.checkpoint, *data, "--subset", "dev"], "there is no data set 'dev'"),
        (["--train", plain.bin], "there is no --arch among them"),
        (other, "--arch lstm is not a model of fairseq_milk"),
    ]
    for arguments, sentence in cases:
        code, out, err = check("--json", *arguments)
        (finding,) = json.loads(out)["checks"]
        assert (code, err, finding["name"], finding["status"]) == (1, "", "loading", "fail"), (arguments, out, err)
        assert sentence in finding["sentence"] and "\n" not in finding["sentence"]
    assert not mark.exists()
    with pytest.raises(SystemExit):
        check("--train", plain.bin, "--arch", "no_such_arch")
