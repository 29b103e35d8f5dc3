"""Broken, old, new and malicious checkpoints, and those of other programs: every loader refuses them."""

import argparse
import os
import pickle
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_milk.console.errors import UserError
from fairseq_milk.host.checkpoint_file import load_with_data_pickle, read_checkpoint
from fairseq_milk.models.milk_rnmt import MilkRNMT
from tests.support import fairseq_commands as commands
from tests.support.checkpoint_loaders import DECODERS, LOADERS, refused, resume
from tests.support.fairseq_commands import run
from tests.support.tiny_translators import Plain

loaders = pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
decoders = pytest.mark.parametrize("load", DECODERS.values(), ids=DECODERS)


# ---- broken -----------------------------------------------------------------------------------------------------


@decoders
def test_a_truncated_checkpoint_is_refused(load: Any, plain: Plain, tmp_path: Path) -> None:
    path, whole = tmp_path / "half.pt", plain.checkpoint.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(load, path, plain.bin, f"{path} is no checkpoint, or only a part of one")


def test_a_file_cut_anywhere(plain: Plain, tmp_path: Path) -> None:
    """A file cut after any number of bytes, and files that never were checkpoints."""
    whole, path = plain.checkpoint.read_bytes(), tmp_path / "cut.pt"
    cuts = sorted({1, 2, 3, 4, 5, 100, len(whole) - 1, len(whole) - 22, *range(50, len(whole), len(whole) // 40)})
    for cut in cuts:
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match="or only a part of one"):
            read_checkpoint(str(path))
    for content, words in ((b"", "is empty"), (b"no checkpoint at all\n", "is no checkpoint, or only a part of one")):
        path.write_bytes(content)
        with pytest.raises(UserError, match=f"{path} {words}"):
            read_checkpoint(str(path))


@pytest.mark.parametrize(
    "content, words",
    [
        ([1, 2, 3], "it has no parameters"),
        ({"some": "thing"}, "it has no parameters"),
        ({"model": {}}, "it has no configuration"),
        ({"model": {}, "cfg": None, "args": None}, "it has no configuration"),
        ({"model": [1], "cfg": {}}, "it has no parameters"),
        ({"model": {1: torch.zeros(1)}, "cfg": {}}, "it has no parameters"),
    ],
)
def test_a_torch_file_that_is_not_a_checkpoint(content: Any, words: str, plain: Plain, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "other.pt")
    for load in DECODERS.values():
        refused(
            load, tmp_path / "other.pt", plain.bin, f"{tmp_path}/other.pt is no checkpoint of fairseq-train: {words}"
        )


# ---- malicious --------------------------------------------------------------------------------------------------


class Malice:
    """A pickle that makes a folder when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def malicious(state: Any, path: Path) -> Path:
    """A valid checkpoint with such a pickle in it, and the folder that loading it would make."""
    mark = path.parent / "mark"
    state["extra_state"]["surprise"] = Malice(mark)
    return mark


WAYS: Dict[str, Callable[[Any, Path], object]] = {
    "zip": lambda state, path: torch.save(state, path),
    "before zip": lambda state, path: torch.save(state, path, _use_new_zipfile_serialization=False),
    "pickle": lambda state, path: path.write_bytes(pickle.dumps(state["extra_state"]["surprise"])),
}


@loaders
def test_code_is_refused_and_not_run(load: Any, plain: Plain, tmp_path: Path, monkeypatch: Any) -> None:
    """Also if an environment variable tells torch to load pickles, as many users do for old checkpoints."""
    state, path = torch.load(plain.checkpoint), tmp_path / "evil.pt"
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    mark = malicious(state, path)
    torch.save(state, path)
    refused(load, path, plain.bin, r"is refused: it holds \w+\.system, which may run code$")
    assert not mark.exists()


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_code_in_every_format(write: Any, plain: Plain, tmp_path: Path) -> None:
    state, path = torch.load(plain.checkpoint), tmp_path / "evil.pt"
    mark = malicious(state, path)
    write(state, path)
    with pytest.raises(UserError, match="is refused: it holds|is no checkpoint"):  # torch reads pickle 2 alone
        read_checkpoint(str(path))
    assert not mark.exists()
    if write is WAYS["pickle"]:
        pickle.loads(path.read_bytes())
    else:
        torch.load(path, weights_only=False)
    assert mark.exists(), "the code of this test does nothing when it is run"


def test_an_older_torch_is_as_careful(plain: Plain, tmp_path: Path) -> None:
    """In an older torch `weights_only` cannot be given fairseq's classes; the plugin's own unpickler is used."""
    state = torch.load(plain.checkpoint)
    state["extra_state"]["more"] = argparse.Namespace(a=[1], b={"c": torch.nn.Parameter(torch.ones(2))})
    for number, write in enumerate((WAYS["zip"], WAYS["before zip"])):
        path = tmp_path / f"{number}.pt"
        write(state, path)
        loaded = load_with_data_pickle(path.read_bytes())
        assert commands.different(loaded["model"], state["model"]) is None
        assert loaded["extra_state"]["more"].a == [1] and loaded["cfg"] == state["cfg"]
    mark = malicious(state, path)
    for write in WAYS.values():
        write(state, path)
        with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL \w+\.system"):
            load_with_data_pickle(path.read_bytes())
    assert not mark.exists()


def fconv(mark: Path, **more: Any) -> argparse.Namespace:
    """A model of fairseq's own that takes its layers from `eval`."""
    code = f"[(8, 3)] if __import__('os').system('touch {mark}') else []"
    sizes = dict(encoder_embed_dim=8, decoder_embed_dim=8, max_source_positions=9, max_target_positions=9)
    layers = dict(encoder_layers=code, decoder_layers=code, decoder_attention=code)
    return argparse.Namespace(
        arch="fconv", encoder_embed_path=None, decoder_embed_path=None, dropout=0.0, **layers, **sizes, **more
    )


@decoders
def test_options_that_fairseq_would_evaluate_are_not(load: Any, plain: Plain, tmp_path: Path) -> None:
    """A checkpoint whose options contain code as text."""
    mark, state = tmp_path / "mark", torch.load(plain.checkpoint)
    state["cfg"]["model"] = fconv(mark, _name="fconv")
    state["cfg"]["task"]["_name"] = "translation"  # of fairseq's own, which refuses none of its models
    torch.save(state, tmp_path / "fconv.pt")
    refused(load, tmp_path / "fconv.pt", plain.bin, "'fconv' is not a model of fairseq_milk")
    assert not mark.exists()


@decoders
def test_contradictory_names_in_an_old_checkpoint_are_not_evaluated(load: Any, plain: Plain, tmp_path: Path) -> None:
    """fairseq builds what `arch` names, whatever `_name` says."""
    mark, state = tmp_path / "mark", torch.load(plain.checkpoint)
    task = dict(task="translation", data=str(plain.bin), source_lang="de", target_lang="en")
    state.update(args=fconv(mark, _name="milk_rnmt", **task))  # beside the configuration of an honest model
    torch.save(state, tmp_path / "fconv.pt")
    refused(load, tmp_path / "fconv.pt", plain.bin, "'fconv' is not a model of fairseq_milk")
    assert not mark.exists()


@pytest.mark.parametrize("loader", ["check", "python", "from_pretrained"])
def test_a_task_that_is_not_a_translation(loader: str, plain: Plain, tmp_path: Path) -> None:
    state = torch.load(plain.checkpoint)
    state["cfg"]["task"]["_name"] = "language_modeling"
    torch.save(state, tmp_path / "task.pt")
    refused(DECODERS[loader], tmp_path / "task.pt", plain.bin, "its task is 'language_modeling'")


# ---- of another model, or another fairseq -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def lstm(plain: Plain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of fairseq's own `lstm`, whose decoder has an `attention` too."""
    folder = tmp_path_factory.mktemp("lstm")
    sizes = "--encoder-embed-dim 8 --encoder-hidden-size 8 --decoder-embed-dim 8 --decoder-hidden-size 8"
    model = f"{plain.bin} --cpu --task translation --arch lstm {sizes} --decoder-out-embed-dim 8 --disable-validation"
    rest = f"--optimizer adam --lr 0.01 --batch-size 8 --max-update 1 --save-dir {folder} --num-workers 0"
    run("fairseq-train", *model.split(), *rest.split())
    return folder / "checkpoint_last.pt"


@decoders
def test_a_model_of_fairseq(load: Any, lstm: Path, plain: Plain) -> None:
    refused(load, lstm, plain.bin, "'lstm' is not a model of fairseq_milk")


CHANGES: List[Callable[[Dict[str, Any]], object]] = [
    lambda state: state["model"].pop("decoder.output.bias"),
    lambda state: state["model"].update({"encoder.embedding.weight": torch.zeros(3, 8)}),
    lambda state: state["cfg"]["model"].update(hidden_size=9),
    lambda state: state["cfg"]["model"].update(_name="milk_transformer_of_2031"),
]


def test_parameters_that_do_not_fit(plain: Plain, tmp_path: Path) -> None:
    for number, change in enumerate(CHANGES):
        state, path = torch.load(plain.checkpoint), tmp_path / f"{number}.pt"
        change(state)
        torch.save(state, path)
        refused(DECODERS["python"], path, plain.bin, "does not fit|is not a model of fairseq_milk")
    for load in DECODERS.values():
        refused(load, tmp_path / "2.pt", plain.bin, "the checkpoint does not fit the dictionaries or the size")


@pytest.mark.parametrize("load", [DECODERS["generate"], DECODERS["python"]], ids=["generate", "python"])
def test_a_checkpoint_of_another_fairseq(load: Any, plain: Plain, tmp_path: Path) -> None:
    """A checkpoint of a newer fairseq with more options is loaded; one without required options is refused."""
    path, state = tmp_path / "newer.pt", torch.load(plain.checkpoint)
    state["cfg"]["reactor"] = {"cores": 2}
    for group in ("model", "task", "common", "dataset"):
        state["cfg"][group]["an_option_of_tomorrow"] = 3
    state["something_new"] = [1]
    torch.save(state, path)
    load(path, plain.bin)
    del state["optimizer_history"]
    torch.save(state, path)
    refused(load, path, plain.bin, f"{path} is of a version of fairseq that this one cannot read: KeyError 'best_loss'")


DAMAGE: Dict[str, Callable[[Dict[str, Any]], object]] = {
    "a mechanism of tomorrow": lambda state: state["cfg"]["model"].update(attention="transformer"),
    "a text for a number": lambda state: state["cfg"]["model"].update(hidden_size="abc"),
    "no model": lambda state: state["cfg"].pop("model"),
    "no task": lambda state: state["cfg"].pop("task"),
    "a model without options": lambda state: state["cfg"].update(model=None),
    "a model that is a name": lambda state: state["cfg"].update(model="milk_rnmt"),
    "a number for a configuration": lambda state: state.update(cfg=3),
    "a list for a configuration": lambda state: state.update(cfg=[1]),
    "no history": lambda state: state.update(optimizer_history=[]),
    "a number for a task": lambda state: state.update(task_state=3),
    "nothing but its parameters": lambda state: state.update(extra_state=None),
    "parameters that are no numbers": lambda state: state["model"]["encoder.embedding.weight"].fill_(float("nan")),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_named(change: Any, plain: Plain, tmp_path: Path) -> None:
    state, path = torch.load(plain.checkpoint), tmp_path / "damaged.pt"
    change(state)
    torch.save(state, path)
    for loader in ("generate", "check", "python", "from_pretrained"):
        refused(DECODERS[loader], path, plain.bin, str(path))


@decoders
def test_paths_that_are_not_files(load: Any, plain: Plain, tmp_path: Path) -> None:
    refused(load, tmp_path / "nowhere.pt", plain.bin, "there is no checkpoint|cannot be read: Model file not found")
    folder = "there is no checkpoint|cannot be read: Is a directory|is a folder, not a checkpoint|no model.json in it"
    refused(load, tmp_path, plain.bin, folder)


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(UserError, match="there is no folder or archive /nowhere"):
        MilkRNMT.from_pretrained("/nowhere")


def test_of_an_ensemble_the_one_at_fault_is_named(plain: Plain, tmp_path: Path) -> None:
    path, state = tmp_path / "misfit.pt", torch.load(plain.checkpoint)
    overrides = {"data": str(plain.bin)}
    load, whole = checkpoint_utils.load_model_ensemble_and_task, str(plain.checkpoint)
    models, _, task = load([whole, whole], overrides)
    assert len(models) == 2 and models[0] is not models[1] and len(task.source_dictionary)
    state["model"].pop("decoder.output.bias")
    torch.save(state, path)
    with pytest.raises(UserError, match=f"{path}: the checkpoint does not fit"):
        load([whole, str(path)], overrides)


def test_a_model_that_has_diverged(plain: Plain, tmp_path: Path) -> None:
    state, path = torch.load(plain.checkpoint), tmp_path / "diverged.pt"
    state["model"]["decoder.output.bias"][5] = float("inf")
    torch.save(state, path)
    refused(DECODERS["generate"], path, plain.bin, "decoder.output.bias is not finite")
    refused(LOADERS["restore"], path, plain.bin, "decoder.output.bias is not finite")


def test_resuming_with_another_size(plain: Plain, tmp_path: Path) -> None:
    path = tmp_path / "smaller.pt"
    path.write_bytes(plain.checkpoint.read_bytes())
    with pytest.raises(UserError, match=f"{path}.* does not fit the dictionaries or the size of this model"):
        resume(path, plain.bin, "--restore-file", path, "--hidden-size", 9)
