"""Resuming a training from a damaged state, or with other options: an error, or a warning that names the options."""

import logging
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import torch

from fairseq_milk.console.errors import UserError
from fairseq_milk.host.resuming import require_resumable
from tests.support.fairseq_commands import CRITERION, make_corpus, run, training

State = Dict[str, Any]


class Begun:
    """A training of a few updates, the last of them in the middle of an epoch."""

    def __init__(self, folder: Path) -> None:
        self.data = make_corpus(folder / "text")
        self.folder = folder
        self.go_on(folder / "begun", "--max-update", 3)
        self.state: Path = folder / "begun" / "checkpoint_last.pt"

    def go_on(self, save_dir: Path, *more: Any) -> Any:
        common = ["--attention", "milk", "--disable-validation", "--optimizer", "rnmt_adam", "--batch-size", 8]
        return run("fairseq-train", *training(self.data, save_dir, *common, *more))

    def resume(self, save_dir: Path, change: Callable[[State], object], *more: Any) -> Any:
        """Resume the training for 2 more updates."""
        state = torch.load(self.state)
        change(state)
        save_dir.mkdir()
        torch.save(state, save_dir / "checkpoint_last.pt")
        return self.go_on(save_dir, "--max-update", 5, *more)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    return Begun(tmp_path_factory.mktemp("resuming"))


def nothing(state: State) -> None:
    pass


def last(state: State) -> State:
    history: State = state["optimizer_history"][-1]
    return history


def moments(state: State) -> State:
    first: State = state["last_optimizer_state"]["state"][0]
    return first


def settings(state: State) -> State:
    """Of the optimiser, which takes them up from a checkpoint."""
    group: State = state["last_optimizer_state"]["param_groups"][0]
    return group


def meters(state: State) -> Any:
    return next(group for group in state["extra_state"]["metrics"].values() if group)


DAMAGE: Dict[str, Callable[[State], object]] = {
    "no iterator": lambda state: state["extra_state"].update(train_iterator=None),
    "an epoch that is text": lambda state: state["extra_state"]["train_iterator"].update(epoch="1"),
    "an epoch before the first": lambda state: state["extra_state"]["train_iterator"].update(epoch=0),
    "a negative offset": lambda state: state["extra_state"]["train_iterator"].update(iterations_in_epoch=-2),
    "an offset beyond the data": lambda state: state["extra_state"]["train_iterator"].update(iterations_in_epoch=999),
    "a version that is a list": lambda state: state["extra_state"]["train_iterator"].update(version=[2]),
    "no extra state": lambda state: state.update(extra_state=None),
    "no history": lambda state: state.update(optimizer_history=[]),
    "a history of numbers": lambda state: state.update(optimizer_history=[1]),
    "updates that are text": lambda state: last(state).update(num_updates="many"),
    "no updates": lambda state: last(state).update(num_updates=-1),
    "no learning rate": lambda state: last(state).update(lr_scheduler_state=None),
    "the best is text": lambda state: last(state).update(lr_scheduler_state={"best": "good"}),
    "no name of a criterion": lambda state: last(state).update(criterion_name=None),
    "statistics that are a number": lambda state: state["extra_state"].update(metrics=3),
    "statistics of another kind": lambda state: state["extra_state"].update(metrics={"train": [(1, "a", "np", {})]}),
    "statistics that are text": lambda state: meters(state)[0][3].update(sum="text"),
    "no optimiser": lambda state: state.update(last_optimizer_state={}),
    "an optimiser of nothing": lambda state: state.update(last_optimizer_state=7),
    "moments of another shape": lambda state: moments(state).update(exp_avg=torch.zeros(3)),
    "moments that are text": lambda state: moments(state).update(exp_avg="text"),
    "moments that are not finite": lambda state: moments(state)["exp_avg_sq"].fill_(float("nan")),
    "steps that are text": lambda state: moments(state).update(step="many"),
    "settings that are text": lambda state: settings(state).update(betas="ab"),
    "a setting that is missing": lambda state: settings(state).pop("eps"),
    "a setting that is not finite": lambda state: settings(state).update(weight_decay=float("nan")),
    "averages that are text": lambda state: state["last_optimizer_state"]["guard"].update(mean="text"),
    "averages that are none": lambda state: state["last_optimizer_state"]["guard"].update(rejects=1),
    "time that is text": lambda state: state["extra_state"].update(previous_training_time="long"),
    "a parameter less": lambda state: state["model"].pop("decoder.output.bias"),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state(change: Callable[[State], object], begun: Begun, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        begun.resume(tmp_path / "save", change)
    assert str(tmp_path / "save" / "checkpoint_last.pt") in str(error.value) and "\n" not in str(error.value)


def test_a_number_of_updates_that_is_too_long_to_print() -> None:
    names = dict(criterion_name="C", optimizer_name="O")
    with pytest.raises(UserError, match="its number of updates is beyond all bounds"):
        require_resumable({"optimizer_history": [{**names, "num_updates": 10**5000}]}, "model.pt")


MEANING = {
    "another mechanism": (["--attention", "mocha"], r"--attention mocha \(was milk\)"),
    "another pace": (["--embed-pace", 4], r"--embed-pace 4.0 \(was 1.0\)"),
    "another optimiser": (["--optimizer", "adam"], "Optimizer does not match; please reset the optimizer"),
    "another criterion": (["--criterion", "cross_entropy"], "Criterion does not match; please reset the optimizer"),
}


@pytest.mark.parametrize("options, words", MEANING.values(), ids=MEANING)
def test_options_that_change_what_is_trained(options: Any, words: str, begun: Begun, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words) as error:
        begun.resume(tmp_path / "save", nothing, *options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("options", [["--attention", "mocha"], ["--optimizer", "adam"]])
def test_reset_optimizer_allows_these_options(options: Any, begun: Begun, tmp_path: Path) -> None:
    begun.resume(tmp_path / "save", nothing, *options, "--reset-optimizer")


def test_another_schedule_of_the_learning_rate(begun: Begun, tmp_path: Path) -> None:
    """Resumed if the state of the old schedule fits, else refused; either way the schedule is named."""
    options = ["--lr-scheduler", "inverse_sqrt", "--warmup-updates", 2]
    try:
        log = begun.resume(tmp_path / "save", nothing, *options).log
    except UserError as error:
        log = str(error)
    assert "--lr-scheduler inverse_sqrt (was" in log


def test_options_of_the_training_are_named(begun: Begun, tmp_path: Path) -> None:
    finished = begun.resume(tmp_path / "save", nothing, "--noise", 1, "--latency-weight", 0.5, "--criterion", CRITERION)
    (line,) = [line for line in finished.log.splitlines() if "with other options than it was trained with" in line]
    assert "--noise 1.0 (was" in line and "--latency-weight 0.5 (was" in line
    assert "--attention" not in line and "--optimizer" not in line


def test_unchanged_options_give_no_warning(begun: Begun, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        finished = begun.resume(tmp_path / "save", nothing)
    assert "other options" not in finished.log
