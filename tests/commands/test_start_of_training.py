"""Warnings and refusals at the start of a training."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fairseq_milk.console.errors import UserError
from fairseq_milk.host.precision import OPTIONS, refuse_half_precision
from fairseq_milk.models.milk_rnmt import MilkRNMT
from tests.support import fairseq_commands as commands
from tests.support import tiny_models as tiny

NO_LATENCY = "--criterion label_smoothed_cross_entropy has no latency term"
OTHER_TASK = "without --task simultaneous_translation"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return commands.make_corpus(tmp_path_factory.mktemp("start"))


def log_of(data: Path, folder: Path, *more: str) -> str:
    arguments = commands.training(data, folder / "checkpoints", *more, "--disable-validation", max_update=1)
    return str(commands.run("fairseq-train", *arguments).log)


@pytest.mark.parametrize("attention, warned", [("milk", True), ("mocha", True), ("waitk", False), ("soft", False)])
def test_a_criterion_without_latency(data: Path, tmp_path: Path, attention: str, warned: bool) -> None:
    log = log_of(data, tmp_path, "--attention", attention, "--criterion", "label_smoothed_cross_entropy")
    assert (NO_LATENCY in log) == warned and OTHER_TASK not in log


def test_the_right_criterion_is_no_reason_to_warn(data: Path, tmp_path: Path) -> None:
    log = log_of(data, tmp_path, "--attention", "milk", "--latency-weight", "0.1")
    assert "has no latency term" not in log and OTHER_TASK not in log


@pytest.mark.parametrize("attention, warned", [("monotonic", True), ("soft", False)])
def test_a_task_of_fairseq_s(data: Path, tmp_path: Path, attention: str, warned: bool) -> None:
    log = log_of(data, tmp_path, "--attention", attention, "--task", "translation")
    assert (f"--attention {attention} {OTHER_TASK}" in log) == warned


@pytest.mark.parametrize("option", ["--fp16", "--bf16", "--amp"])
def test_half_precision_on_a_cpu(data: Path, tmp_path: Path, option: str) -> None:
    with pytest.raises(UserError, match=f"{option} needs a GPU; on a CPU, --product-precision bf16"):
        log_of(data, tmp_path, option)


@pytest.mark.parametrize("option", OPTIONS)
def test_half_precision_on_a_gpu(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    common = SimpleNamespace(**{**dict.fromkeys(OPTIONS, False), option: True}, cpu=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    refuse_half_precision(SimpleNamespace(common=common))
    common.cpu = True
    with pytest.raises(UserError, match=f"--{option.replace('_', '-')} needs a GPU"):
        refuse_half_precision(SimpleNamespace(common=common))


def model(source: int, target: int) -> MilkRNMT:
    task = SimpleNamespace(source_dictionary=tiny.dictionary(source), target_dictionary=tiny.dictionary(target))
    return MilkRNMT.build_model(tiny.options(), task)


@pytest.mark.parametrize("source, target, guessed", [(9, 12, True), (9, 9, False), (12, 10, False)])
def test_swapped_languages_are_guessed(source: int, target: int, guessed: bool) -> None:
    with pytest.raises(UserError, match="does not fit the dictionaries") as raised:
        model(12, 9).load_state_dict(model(source, target).state_dict())
    assert ("are source and target language swapped?" in str(raised.value)) == guessed


def test_swapped_languages_with_dictionaries_of_one_size(data: Path, tmp_path: Path) -> None:
    """All parameters fit, and both dictionaries are from the training."""
    log_of(data, tmp_path)
    arguments = commands.decoding(data, tmp_path / "checkpoints" / "checkpoint_last.pt", "-s", "en", "-t", "de")
    with pytest.raises(UserError, match="does not translate from en to de: are source and target language swapped?"):
        commands.run("fairseq-generate", *arguments)


# ---- shares of a training -------------------------------------------------------------------------------------------


def log_of_epochs(data: Path, folder: Path, *more: str) -> str:
    """The log of a training of MILk with the default shares, in batches of four of the 37 sentences."""
    shares = "--head-after 0.3 --latency-after 0.3 --latency-ramp 0.05"
    options = f"--attention milk --latency-weight 0.1 {shares} --batch-size 4 --disable-validation".split()
    arguments = commands.training(data, folder / "checkpoints", *options, *more, max_update=0)
    return str(commands.run("fairseq-train", *arguments).log)


def test_a_training_of_epochs_knows_its_length(data: Path, tmp_path: Path) -> None:
    log = log_of_epochs(data, tmp_path, "--max-epoch", "2")
    assert "of 20 updates --head-after 0.3 is 6, --latency-after 0.3 is 6, --latency-ramp 0.05 is 1" in log
    assert "is not known" not in log


def test_a_training_of_epochs_that_is_extended_keeps_its_thresholds(data: Path, tmp_path: Path) -> None:
    """Otherwise the head of a model that has learned when to write would be inactive again for a while."""
    log_of_epochs(data, tmp_path, "--max-epoch", "1")
    assert "of 10 updates --head-after 0.3 is 3" in log_of_epochs(data, tmp_path, "--max-epoch", "2")
    anew = log_of_epochs(
        data, tmp_path, "--max-epoch", "1", "--reset-optimizer", "--reset-dataloader", "--update-freq", "2"
    )
    assert "of 5 updates --head-after 0.3 is 2" in anew


def test_a_training_without_end_says_that_a_share_needs_one(data: Path, tmp_path: Path) -> None:
    log = log_of_epochs(data, tmp_path, "--stop-time-hours", "1e-9")
    assert "--head-after 0.3, --latency-after 0.3, --latency-ramp 0.05: shares of the length of the training" in log
    assert "Give --max-update or --max-epoch, or numbers of updates" in log
