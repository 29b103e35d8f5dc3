"""Checkpoints of strangers: whatever is in them, no code is run, nothing hangs, and damage is noticed."""

import io
import os
import random
import tarfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict, List
from unittest import mock

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_milk.console.errors import UserError
from fairseq_milk.generation import load_model
from fairseq_milk.host.checkpoint_file import HAS_ALLOW_LIST
from fairseq_milk.models.milk_rnmt import MilkRNMT
from tests.support.checkpoint_loaders import DECODERS, LOADERS, refused
from tests.support.fairseq_commands import decoding, different, run
from tests.support.tiny_translators import Plain

FLIPS = 200
SECONDS = 60.0  # that a refusal may take


def touch(mark: Path) -> str:
    """A Python expression that creates the file `mark`."""
    return f"__import__('os').system('touch {mark}')"


def write(plain: Plain, path: Path, change: Callable[[Dict[str, Any]], object]) -> Path:
    state = torch.load(plain.checkpoint)
    change(state)
    torch.save(state, path)
    return path


# ---- parts that evaluate their options ------------------------------------------------------------------------------


@pytest.mark.parametrize("loader", ["python", "from_pretrained", "check", "stream", "validate", "fairseq in python"])
def test_a_task_with_two_names(loader: str, plain: Plain, tmp_path: Path) -> None:
    """fairseq's `setup_task` looks at `task` before `_name`."""
    mark = tmp_path / "mark"
    more = dict(task="multilingual_translation", left_pad_source=touch(mark), lang_pairs="de-en")
    path = write(plain, tmp_path / "two.pt", lambda state: state["cfg"]["task"].update(more))
    refused(LOADERS[loader], path, plain.bin, "its task is 'multilingual_translation'")
    assert not mark.exists()


def test_a_criterion_that_evaluates_its_options(plain: Plain, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    ctc = dict(_name="ctc", wer_args=f"({touch(mark)}, 1, 1, 1)", zero_infinity=False, post_process="letter")
    path = write(plain, tmp_path / "ctc.pt", lambda state: state["cfg"].update(criterion=ctc))
    refused(LOADERS["validate"], path, plain.bin, "its criterion 'ctc' is not one that a checkpoint may ask for")
    assert not mark.exists()


@pytest.mark.parametrize(
    "part, options",
    [
        ("optimizer", {"_name": "adam", "adam_betas": "(0.9, print())"}),
        ("optimizer", {"_name": "composite"}),
        ("lr_scheduler", {"_name": "manual"}),
        ("bpe", {"_name": "gpt2"}),
        ("bpe", "gpt2"),
        ("bpe", {"_name": "subword_nmt", "bpe_codes": "http://localhost:1/codes"}),
        ("tokenizer", {"_name": "nltk"}),
        ("scoring", {"_name": "wer"}),
        ("bpe", {"_name": "subword_nmt", "bpe_codes": "http:/\t/localhost:1/codes"}),
        ("bpe", {"_name": "subword_nmt", "bpe_codes": "/dev/zero"}),
        ("criterion", ["ctc"]),
        ("criterion", {"_name": 5}),
        ("criterion", {"_name": "label_smoothed_cross_entropy", "label_smoothing": "all"}),
        ("dataset", 5),
        ("task", {"_name": "translation", "eval_bleu": True, "eval_bleu_detok": "nltk"}),
    ],
)
def test_every_part_is_chosen_from_a_list(part: str, options: Any, plain: Plain, tmp_path: Path) -> None:
    path = write(plain, tmp_path / "part.pt", lambda state: state["cfg"].update({part: options}))
    refused(DECODERS["python"], path, plain.bin, part.split("_")[0] if part != "task" else "tokenizer 'nltk'")


def test_a_checkpoint_without_a_criterion_cannot_be_validated(plain: Plain, tmp_path: Path) -> None:
    path = write(plain, tmp_path / "none.pt", lambda state: state["cfg"].update(criterion=None))
    with pytest.raises(UserError, match="no criterion is named"):
        LOADERS["validate"](path, plain.bin)


def test_a_checkpoint_does_not_say_how_to_generate(plain: Plain, tmp_path: Path) -> None:
    """fairseq's hub interface would read the file of --replace-unk, and fail on missing options."""
    path = tmp_path / "generation.pt"
    for change in (dict(replace_unk="/dev/zero", beam="five"), None):
        write(plain, path, lambda state, change=change: state["cfg"].update(generation=change))  # type: ignore[misc]
        hub = MilkRNMT.from_pretrained(str(tmp_path), path.name, str(plain.bin))
        assert hub.cfg.generation.replace_unk is None and hub.cfg.generation.beam == 5


def test_a_checkpoint_names_no_file_to_read_or_folder_to_write(plain: Plain, tmp_path: Path) -> None:
    """The task has copies of such options, and reads --input when a generator is built; here it is an endless pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def change(state: Dict[str, Any]) -> None:
        for group in ("task", "interactive", "common_eval"):
            state["cfg"].setdefault(group, {}).update(input=str(pipe), results_path=str(tmp_path))

    path = write(plain, tmp_path / "files.pt", change)
    hub = MilkRNMT.from_pretrained(str(tmp_path), path.name, str(plain.bin))
    assert (hub.task.option("input", "-"), hub.task.option("results_path", "None")) == ("-", "None")


@pytest.mark.parametrize("state", [[1], {"length": "long"}, {"length": 10**30}, {"length": True}])
def test_a_damaged_state_of_the_task(state: Any, plain: Plain, tmp_path: Path) -> None:
    path = write(plain, tmp_path / "task.pt", lambda content: content.update(task_state=state))
    refused(DECODERS["python"], path, plain.bin, "the checkpoint is damaged: the (state|length) of its t")


def test_names_of_an_old_checkpoint_are_no_paths(plain: Plain, tmp_path: Path) -> None:
    """They are put into the command line of Hydra, which would read the file."""

    def change(state: Dict[str, Any]) -> None:
        options = {**state["cfg"]["model"], **state["cfg"]["task"], "arch": "milk_rnmt_tiny"}
        options.update(task="simultaneous_translation", bpe="../../evil")
        state.update(args=Namespace(**options), cfg=None)

    path = write(plain, tmp_path / "old.pt", change)
    refused(DECODERS["python"], path, plain.bin, "its bpe has an invalid name")


@pytest.mark.parametrize("option", ["encoder_layers", "decoder_layers", "hidden_size", "energy_dim"])
@pytest.mark.parametrize("value", [10**8, "100000000"])
def test_a_model_larger_than_its_file_is_not_built(option: str, value: Any, plain: Plain, tmp_path: Path) -> None:
    path = write(plain, tmp_path / "large.pt", lambda state: state["cfg"]["model"].update({option: value}))
    refused(DECODERS["python"], path, plain.bin, f"its {option} is 100000000, but its parameters are not of such")


@pytest.mark.parametrize("shape", [(60_000, 0), (60_000,)])
def test_wide_parameters_without_content_allow_no_wide_model(shape: Any, plain: Plain, tmp_path: Path) -> None:
    """A small file asks for 60,000 units in each of 50 layers, which would need terabytes."""

    def change(state: Dict[str, Any]) -> None:
        state["cfg"]["model"].update(hidden_size=60_000, encoder_layers=30, decoder_layers=20)
        state["model"].update({f"more.{number}": torch.zeros(shape) for number in range(50)})

    path = write(plain, tmp_path / "large.pt", change)
    refused(DECODERS["python"], path, plain.bin, "but its parameters are not of such|larger than all its parameters")


# ---- ensembles and shards -------------------------------------------------------------------------------------------


def evil(plain: Plain, path: Path, mark: Path) -> Path:
    """A model of fairseq's own that evaluates its options."""
    layers = dict(arch="fconv", encoder_layers=touch(mark), decoder_layers="[]", decoder_attention="False")

    def change(state: Dict[str, Any]) -> None:
        state["cfg"]["model"] = layers
        state["fsdp_metadata"] = {}

    return write(plain, path, change)


def test_every_model_of_an_ensemble_is_checked(plain: Plain, tmp_path: Path) -> None:
    path = evil(plain, tmp_path / "second.pt", tmp_path / "mark")
    with pytest.raises(UserError, match=f"{path} is refused: 'fconv' is not a model of fairseq_milk"):
        checkpoint_utils.load_model_ensemble_and_task([str(plain.checkpoint), str(path)], {"data": str(plain.bin)})
    assert not (tmp_path / "mark").exists()


def load_shards(path: Path, data: Path, shards: int) -> Any:
    """As `fairseq-generate --checkpoint-shard-count`."""
    options: Dict[str, Any] = dict(strict=shards == 1, num_shards=shards)
    return checkpoint_utils.load_model_ensemble_and_task([str(path)], {"data": str(data)}, **options)


@pytest.mark.parametrize("name, shards", [("model-shard0.pt", 1), ("model-shard1.pt", 2)])
def test_every_shard_is_checked(name: str, shards: int, plain: Plain, tmp_path: Path) -> None:
    """fairseq reads `model-shard0.pt` instead of `model.pt` if it exists."""
    for number in range(2):
        write(plain, tmp_path / f"model-shard{number}.pt", lambda state: state.update(fsdp_metadata={}))
    write(plain, tmp_path / "model.pt", lambda state: None)
    path = evil(plain, tmp_path / name, tmp_path / "mark")
    with mock.patch.object(checkpoint_utils, "has_FSDP", True):  # fairscale need not be installed
        with pytest.raises(UserError, match=f"{path} is refused: 'fconv' is not a model of fairseq_milk"):
            load_shards(tmp_path / "model.pt", plain.bin, shards)
    assert not (tmp_path / "mark").exists()


def test_parts_of_a_model_are_not_taken_for_a_model(plain: Plain, tmp_path: Path) -> None:
    """fairseq would keep the last part; parameters that it lacks would keep their random initial values."""
    for number in range(2):
        write(plain, tmp_path / f"model_part{number}.pt", lambda state: state["model"].pop("decoder.output.bias"))
    with pytest.raises(UserError, match="model_part0.pt is refused: it is not one of the shards"):
        load_shards(tmp_path / "model.pt", plain.bin, 2)


# ---- language models ------------------------------------------------------------------------------------------------


def test_a_language_model_of_fairseq(plain: Plain, tmp_path: Path) -> None:
    """--lm-path builds what a second checkpoint names."""
    mark = tmp_path / "mark"
    layers = dict(decoder_layers=f"[(8, 3)] if {touch(mark)} else []", decoder_attention="False")
    sizes = dict(decoder_embed_dim=8, tokens_per_sample=8, dropout=0.0, decoder_out_embed_dim=8)

    def change(state: Dict[str, Any]) -> None:
        state["cfg"]["model"] = Namespace(arch="fconv_lm", criterion="cross_entropy", **layers, **sizes)
        state["cfg"]["task"] = {"_name": "language_modeling", "data": str(plain.bin)}

    path = write(plain, tmp_path / "lm.pt", change)
    with pytest.raises(UserError, match=f"{path} is refused"):
        run("fairseq-generate", *decoding(plain.bin, plain.checkpoint, "--lm-path", path))
    assert not mark.exists()


# ---- configurations that are more than data -------------------------------------------------------------------------


@pytest.mark.parametrize("loader", ["python", "generate", "from_pretrained"])
@pytest.mark.parametrize("group, key", [("model", "_name"), ("task", "source_lang"), ("bpe", "bpe_codes")])
def test_interpolation(loader: str, group: str, key: str, plain: Plain, tmp_path: Path) -> None:
    def change(state: Dict[str, Any]) -> None:
        options = state["cfg"][group] or {"_name": "subword_nmt"}
        state["cfg"][group] = {**options, key: "${oc.env:HOME}"}

    path = write(plain, tmp_path / "name.pt", change)
    refused(DECODERS[loader], path, plain.bin, f"its configuration has an interpolation.*{group}.{key}")


def nested(depth: int) -> List[Any]:
    result: List[Any] = []
    for _ in range(depth):
        result = [result]
    return result


def expanding(times: int) -> List[Any]:
    result: List[Any] = [1]
    for _ in range(times):
        result = [result] * 10
    return result


def circle() -> Dict[str, Any]:
    result: Dict[str, Any] = {}
    result["again"] = result
    return result


STRANGE: Dict[str, Callable[[], Any]] = {
    "nested": lambda: nested(300),
    "expanding": lambda: expanding(12),
    "itself": circle,
    "many": lambda: {str(number): number for number in range(30_000)},
    "long": lambda: "x" * 100_000,
    "large": lambda: 2**200,
    "tensor": lambda: torch.zeros(3),
    "keys": lambda: {(1, 2): 3},
    "escape": lambda: "\x1b[2Jgone",
}


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_configurations_without_bounds(make: Callable[[], Any], plain: Plain, tmp_path: Path) -> None:
    path, value = tmp_path / "strange.pt", make()
    write(plain, path, lambda state: state["cfg"]["common"].update(strange=value))
    for load in (DECODERS["python"], DECODERS["generate"]):
        began = time.monotonic()
        refused(load, path, plain.bin, f"{path} is refused")
        assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("kind", ["nested", "expanding", "itself"])
def test_state_without_bounds(kind: str, plain: Plain, tmp_path: Path) -> None:
    value = STRANGE[kind]()
    path = write(plain, tmp_path / "strange.pt", lambda state: state.update(more=value))
    refused(DECODERS["python"], path, plain.bin, f"{path} is refused")


def test_no_escape_sequence_reaches_the_terminal(plain: Plain, tmp_path: Path) -> None:
    names = {"encoder.\x1b]0;owned\x07weight": torch.zeros(1)}
    path = write(plain, tmp_path / "escape.pt", lambda state: state["model"].update(names))
    with pytest.raises(UserError) as error:
        load_model(str(path), str(plain.bin))
    assert str(error.value).isprintable()
    assert str(UserError("a\x1b[2Jb\nc\u202ed é")) == "a\\x1b[2Jb\\nc\\u202ed é"


# ---- arrays, tensors, archives --------------------------------------------------------------------------------------


def test_numbers_of_numpy_are_read_and_other_arrays_refused(plain: Plain, tmp_path: Path) -> None:
    counts, part = np.arange(6, dtype="i8").reshape(2, 3), np.arange(6, dtype="f4").reshape(3, 2).T
    numbers: Dict[str, Any] = {"counts": counts, "mean": np.float64(0.25), "part": part}
    path = write(plain, tmp_path / "numbers.pt", lambda state: state["extra_state"].update(numbers))
    extra = checkpoint_utils.load_checkpoint_to_cpu(str(path))["extra_state"]
    assert np.array_equal(extra["counts"], numbers["counts"]) and extra["counts"].dtype == np.int64
    assert extra["mean"] == 0.25 and np.array_equal(extra["part"], numbers["part"])
    for other in (np.array([1, "a"], dtype=object), np.array(["text"]), np.zeros(2, dtype=[("a", "i4")])):
        write(plain, path, lambda state, other=other: state["extra_state"].update(other=other))  # type: ignore[misc]
        refused(DECODERS["python"], path, plain.bin, "or only a part of one: it holds an array")


@pytest.mark.skipif(not HAS_ALLOW_LIST, reason="this torch is not asked: the plugin's own unpickler is used")
def test_torch_s_advice_to_run_code_is_not_repeated(plain: Plain, tmp_path: Path) -> None:
    path = write(plain, tmp_path / "number.pt", lambda state: state.update(number=10**5000))
    refused(DECODERS["python"], path, plain.bin, "or only a part of one: Unsupported operand")


def test_tensors_larger_than_their_data(plain: Plain, tmp_path: Path) -> None:
    huge = torch.zeros(1).expand(10**12)
    path = write(plain, tmp_path / "huge.pt", lambda state: state["extra_state"].update(huge=huge))
    refused(DECODERS["python"], path, plain.bin, "it holds a tensor that is larger than its data")


def test_a_flipped_bit_is_noticed(plain: Plain, tmp_path: Path) -> None:
    """The checkpoint is refused, or everything that is read from it is unchanged."""
    content, path, draw = plain.checkpoint.read_bytes(), tmp_path / "flipped.pt", random.Random(1)
    whole = checkpoint_utils.load_checkpoint_to_cpu(str(plain.checkpoint))
    refusals = 0
    for _ in range(FLIPS):
        flipped = bytearray(content)
        flipped[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        try:
            state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
        except UserError as error:
            assert str(path) in str(error)
            refusals += 1
        else:
            assert different(state["model"], whole["model"]) is None and state["cfg"] == whole["cfg"]
    assert refusals > FLIPS // 2


@pytest.mark.parametrize("loader", ["python", "check", "from_pretrained"])
def test_a_file_is_read_once(loader: str, plain: Plain, tmp_path: Path) -> None:
    """The content that was checked is built: the file cannot be replaced in between."""
    path = write(plain, tmp_path / "model.pt", lambda state: None)
    opened: List[str] = []
    real = open

    def counting(file: Any, *args: Any, **kwargs: Any) -> Any:
        opened.append(str(file))
        return real(file, *args, **kwargs)

    with mock.patch("builtins.open", counting):
        try:
            DECODERS[loader](path, plain.bin)
        except AssertionError:  # of `check`, which finds nothing wrong
            assert loader == "check"
    assert opened.count(str(path)) == 1


@pytest.mark.parametrize("name", ["../outside.txt", "{}/outside.txt", "model/../../outside.txt"])
def test_an_archive_that_writes_elsewhere(name: str, plain: Plain, tmp_path: Path) -> None:
    archive = tmp_path / "inner" / "model.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as file:
        file.add(plain.checkpoint, "model/model.pt")
        member = tarfile.TarInfo(name.format(tmp_path))
        member.size = 3
        file.addfile(member, io.BytesIO(b"bad"))
    before = archive.read_bytes()
    with pytest.raises(UserError, match="would be written outside of its folder"):
        MilkRNMT.from_pretrained(str(archive), "model.pt", str(plain.bin))
    assert not list(tmp_path.rglob("outside.txt"))
    assert archive.read_bytes() == before


def test_an_archive_is_unpacked_and_kept(plain: Plain, tmp_path: Path) -> None:
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(plain.checkpoint, "model/model.pt")
    assert MilkRNMT.from_pretrained(str(archive), "model.pt", str(plain.bin)).models
    assert archive.is_file()
    archive.write_bytes(b"no archive")
    with pytest.raises(UserError, match="is neither a folder nor an archive of a model"):
        MilkRNMT.from_pretrained(str(archive), "model.pt", str(plain.bin))


# ---- dictionaries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loader", ["python", "generate", "check", "resume"])
def test_another_dictionary_of_the_same_size(loader: str, plain: Plain, tmp_path: Path) -> None:
    data = tmp_path / "bin"
    data.mkdir()
    for path in plain.bin.iterdir():
        (data / path.name).write_bytes(path.read_bytes())
    lines = (data / "dict.en.txt").read_text().splitlines()
    lines[0], lines[1] = lines[1], lines[0]
    (data / "dict.en.txt").write_text("\n".join(lines) + "\n")
    path = write(plain, tmp_path / "model.pt", lambda state: None)
    refused(LOADERS[loader], path, data, "dict.en.txt is not the dictionary that the model was trained with")
