"""End to end through fairseq's own commands: train, resume, load, validate, translate, and what is refused."""

import argparse
import re
import shutil
import signal
import zipfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, tasks
from fairseq.data import data_utils

from fairseq_milk.console.errors import UserError
from fairseq_milk.models.milk_rnmt import MilkRNMT
from fairseq_milk.modules import LayerNormLSTM
from tests.support import fairseq_commands as commands
from tests.support.fairseq_commands import SENTENCES, decoding, run, training

BATCHES = 5  # of eight sentences


class Trained(NamedTuple):
    data: Path
    folder: Path
    checkpoint: Path
    log: commands.Finished


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """MILk, an epoch and two updates of the next."""
    folder = tmp_path_factory.mktemp("train")
    data = commands.make_corpus(folder)
    more = ["--latency-weight", 0.1, "--dropout", 0.1, "--tensorboard-logdir", folder / "tensorboard"]
    log = run("fairseq-train", *training(data, folder / "save", *more, max_update=BATCHES + 2))
    return Trained(data, folder, folder / "save" / "checkpoint_last.pt", log)


# ---- training ---------------------------------------------------------------------------------------------------


def test_every_sentence_is_trained_and_validated_on(trained: Trained) -> None:
    """fairseq by itself drops the batch of five."""
    epoch = trained.log.json("train_loss")[0]
    assert epoch["train_num_updates"] == str(BATCHES)
    assert float(epoch["train_bsz"]) * BATCHES == SENTENCES
    assert float(trained.log.json("valid_loss")[0]["valid_bsz"]) * BATCHES == SENTENCES


def test_a_multiple_that_is_asked_for_is_kept_in_training_alone(trained: Trained) -> None:
    """--required-batch-size-multiple 8: the batch of five is dropped if fairseq does so, but not from a validation."""
    task = tasks.setup_task(checkpoint_utils.load_checkpoint_to_cpu(str(trained.checkpoint))["cfg"].task)
    taken = {}
    for split in ("train", "valid"):
        task.load_dataset(split)
        batches = task.get_batch_iterator(task.datasets[split], max_sentences=8, required_batch_size_multiple=8)
        taken[split] = sum(map(len, batches.frozen_batches))
    sizes = dict(max_sentences=8, required_batch_size_multiple=8)
    stock = data_utils.batch_by_size(np.arange(SENTENCES), num_tokens_fn=lambda i: 5, **sizes)
    assert taken == {"train": sum(map(len, stock)), "valid": SENTENCES}  # 0.12.2 drops nothing


def test_the_figures_are_in_the_log(trained: Trained) -> None:
    figures = {"loss", "nll_loss", "ppl", "latency", "latency_weight", "ap", "dal", "certainty", "last_mass"}
    update, epoch, valid = (trained.log.json(key)[0] for key in ("update", "train_loss", "valid_loss"))
    assert figures | {"rejected_steps", "gnorm"} <= update.keys()
    assert {f"train_{name}" for name in figures} <= epoch.keys()
    expected = {f"expected_{name}" for name in ("nll_loss", "ap", "dal", "certainty", "last_mass")}
    assert {f"valid_{name}" for name in figures | expected | {"al"}} <= valid.keys()
    assert not {"al", "train_al", "valid_expected_al"} & {*update, *epoch, *valid}, "AL is not defined in expectation"
    assert float(valid["valid_certainty"]) == 1 > float(valid["valid_expected_certainty"])
    assert float(update["latency_weight"]) == 0.1


def test_a_killed_run_ends_as_if_it_had_not_been_killed(trained: Trained, tmp_path: Path) -> None:
    """The state of dropout, noise, the guard, the learning rate and the batches is restored."""
    schedule = "--lr-scheduler rnmt_plus --lr-replicas 2 --lr-warmup 2 --lr-decay-start 14 --lr-decay-end 30".split()
    more = ["--latency-weight", 0.1, "--latency-ramp", 8, "--dropout", 0.2, "--save-interval-updates", 4, *schedule]

    def arguments(name: str) -> List[str]:
        return training(trained.data, tmp_path / name, *more, max_update=24)

    process = commands.start("fairseq-train", *arguments("killed"))
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if '"num_updates": "10"' in line:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    again = run("fairseq-train", *arguments("killed"))
    assert "Loaded checkpoint" in again.log
    assert int(again.json("update")[0]["num_updates"]) > 5, "it has not been resumed in a later epoch"
    run("fairseq-train", *arguments("whole"))
    ends = [commands.parameters(tmp_path / name / "checkpoint_last.pt") for name in ("killed", "whole")]
    assert commands.different(*ends) is None


def test_a_kill_while_a_checkpoint_is_written_leaves_the_last_one(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tmp_path / "checkpoint_last.pt"
    shutil.copyfile(trained.checkpoint, before)
    resumed = int(torch.load(before)["optimizer_history"][-1]["num_updates"])

    def killed(src: str, dst: str) -> None:
        Path(dst).write_bytes(Path(src).read_bytes()[:100])
        raise KeyboardInterrupt

    arguments = training(trained.data, tmp_path, "--validate-interval", 9, max_update=resumed + 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "copyfile", killed)
        run("fairseq-train", *arguments, "--validate-interval-updates", 1)
    assert commands.different(commands.parameters(before), commands.parameters(trained.checkpoint)) is None


def test_resuming_with_eval_bleu(trained: Trained, tmp_path: Path) -> None:
    """Checkpoints of --eval-bleu hold numpy arrays, which torch refuses by default."""
    more = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_a": 1, "max_len_b": 5}']
    for max_update in (2, 4):
        log = run("fairseq-train", *training(trained.data, tmp_path, *more, max_update=max_update))
    assert "valid_bleu" in log.json("valid_loss")[-1] and log.json("update")[0]["num_updates"] == "3"


# ---- loading ----------------------------------------------------------------------------------------------------


def load(checkpoint: Path, **overrides: Any) -> MilkRNMT:
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=overrides)
    assert isinstance(models[0], MilkRNMT)
    return models[0]


def test_functions_of_fairseq_load_it(trained: Trained) -> None:
    model = load(trained.checkpoint)
    assert commands.different(dict(model.state_dict()), commands.parameters(trained.checkpoint)) is None
    again = MilkRNMT.from_pretrained(str(trained.checkpoint.parent), "checkpoint_last.pt", str(trained.data))
    assert again.translate("a1 a2", beam=1) is not None


@pytest.mark.parametrize("name", ["milk_rnmt", "milk_rnmt_tiny"])
def test_a_checkpoint_from_before_an_option(name: str, trained: Trained, tmp_path: Path) -> None:
    """fairseq handles an architecture with the name of the model differently from others."""
    state = torch.load(trained.checkpoint)
    model: Dict[str, Any] = state["cfg"]["model"]
    for option in ("cell_clip", "chunk_size", "head_pace", "unpreserved_mass"):
        del model[option]
    model["_name"], model["an_option_that_is_gone"] = name, 3
    del state["cfg"]["task"]["head_threshold"]
    del state["cfg"]["criterion"]["latency_ramp"]
    torch.save(state, tmp_path / "old.pt")
    loaded = load(tmp_path / "old.pt")
    (layer,) = loaded.encoder.layers
    assert isinstance(layer, LayerNormLSTM) and layer.options.cell_clip == 10.0
    assert commands.different(dict(loaded.state_dict()), state["model"]) is None
    more = ["--valid-subset", "test", "--batch-size", 8]
    run("fairseq-validate", *decoding(trained.data, tmp_path / "old.pt", *more))


def test_validate(trained: Trained) -> None:
    more = ["--valid-subset", "valid", "--batch-size", 8, "--log-format", "json"]
    valid = run("fairseq-validate", *decoding(trained.data, trained.checkpoint, *more)).json("valid_loss")[0]
    in_training = trained.log.json("valid_loss")[-1]
    assert valid["valid_bsz"] == str(SENTENCES)  # the sum, here
    for name in ("valid_loss", "valid_dal", "valid_expected_dal"):
        assert float(valid[name]) == pytest.approx(float(in_training[name]), abs=2e-3)


def hypotheses(finished: commands.Finished) -> List[int]:
    """The ids of the H- lines, in their order."""
    return [int(match.group(1)) for match in re.finditer(r"^H-(\d+)\t", finished.stdout, flags=re.MULTILINE)]


@pytest.mark.parametrize("batching", [["--batch-size", 8], ["--batch-size", 5], ["--max-tokens", 60]])
def test_generate_drops_no_sentence(batching: List[Any], trained: Trained) -> None:
    limit = ["--max-len-a", 1, "--max-len-b", 2]
    finished = run("fairseq-generate", *decoding(trained.data, trained.checkpoint, *limit, *batching))
    assert sorted(hypotheses(finished)) == list(range(SENTENCES))


def test_interactive_drops_no_sentence(trained: Trained) -> None:
    more = ["--input", trained.folder / "test.de", "--buffer-size", 16, "--batch-size", 8]
    more += ["-s", "de", "-t", "en", "--max-len-a", 1, "--max-len-b", 2]
    finished = run("fairseq-interactive", *decoding(trained.data, trained.checkpoint, *more))
    assert hypotheses(finished) == list(range(SENTENCES))


def test_the_offline_model_trains_and_searches(trained: Trained, tmp_path: Path) -> None:
    sizes = ["--arch", "rnmt_offline", "--encoder-layers", 3, "--decoder-layers", 2]
    run("fairseq-train", *training(trained.data, tmp_path, *sizes, max_update=2))
    more = ["--beam", 3, "--batch-size", 8, "--max-len-a", 1, "--max-len-b", 2]
    finished = run("fairseq-generate", *decoding(trained.data, tmp_path / "checkpoint_last.pt", *more))
    assert sorted(hypotheses(finished)) == list(range(SENTENCES))


def test_checkpoints_of_fairseq_models_load(trained: Trained, tmp_path: Path) -> None:
    """`lstm` keeps its options in an argparse.Namespace."""
    sizes = "--arch lstm --encoder-embed-dim 8 --encoder-hidden-size 8 --decoder-embed-dim 8 --decoder-hidden-size 8"
    plain = f"{trained.data} --user-dir {commands.PLUGIN} --cpu --task translation {sizes} --decoder-out-embed-dim 8"
    rest = f"--optimizer adam --lr 0.01 --batch-size 8 --max-update 1 --save-dir {tmp_path} --num-workers 0"
    run("fairseq-train", *plain.split(), *rest.split(), "--disable-validation")
    checkpoint = tmp_path / "checkpoint_last.pt"
    cfg = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["cfg"]
    assert isinstance(cfg["model"], argparse.Namespace)
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], task=tasks.setup_task(cfg.task))
    assert type(models[0]).__name__ == "LSTMModel"
    with pytest.raises(UserError, match="'lstm' is not a model of fairseq_milk"):  # fairseq's own task was not named
        checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)])


def test_a_checkpoint_written_with_an_older_numpy(trained: Trained, tmp_path: Path) -> None:
    """numpy 2 has moved the functions that rebuild arrays; checkpoints of --eval-bleu call them by their old names."""
    state = torch.load(trained.checkpoint)
    state["extra_state"]["counts"] = [np.arange(3), np.float64(2.5)]
    torch.save(state, tmp_path / "new.pt")
    with zipfile.ZipFile(tmp_path / "new.pt") as new, zipfile.ZipFile(tmp_path / "old.pt", "w") as old:
        for item in new.infolist():
            content = new.read(item)
            if item.filename.endswith("data.pkl"):
                content = content.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
            old.writestr(item.filename, content)
    counts, mean = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "old.pt"))["extra_state"]["counts"]
    assert np.array_equal(counts, np.arange(3)) and mean == 2.5


# ---- fairseq-hydra-train ----------------------------------------------------------------------------------------


def test_hydra_with_our_configuration_and_products_in_bf16(trained: Trained, tmp_path: Path) -> None:
    overrides = [f"common.user_dir={commands.PLUGIN}", f"task.data={trained.data}", f"checkpoint.save_dir={tmp_path}"]
    overrides += [
        "+model.product_precision=bf16",
        "optimization.max_update=3",
        "common.log_interval=1",
        "model.hidden_size=8",
    ]
    config = ["--config-dir", commands.ROOT / "examples" / "hydra", "--config-name", "milk_rnmt_tiny"]
    finished = commands.shell("fairseq-hydra-train", *config, *overrides, f"hydra.run.dir={tmp_path}")
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert "nan" not in finished.stdout and '"rejected_steps": "0"' in finished.stdout
    state = torch.load(tmp_path / "checkpoint_last.pt")
    assert state["optimizer_history"][-1]["num_updates"] == 3
    for name, x in state["model"].items():
        assert torch.isfinite(x).all() and x.dtype == torch.float32, name


# ---- what is refused, in one sentence ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, words",
    [
        ("--attention waitk --wait-k 0", "--wait-k must be at least 1, got 0"),
        ("--attention mocha --chunk-size 0", "--chunk-size must be at least 1, got 0"),
        ("--dropout 1.5", "--dropout must be at least 0 and below 1, got 1.5"),
        ("--latency-weight -1", "--latency-weight must be 0 or a positive number, got -1.0"),
        ("--encoder-bidirectional", "--encoder-bidirectional .* not with --attention milk"),
        ("--train-subset nowhere", "there is no data set 'nowhere' in "),
        ("--max-source-positions 1", "--max-source-positions"),
    ],
)
def test_bad_options(options: str, words: str, trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words) as error:
        run("fairseq-train", *training(trained.data, tmp_path, *options.split()))
    assert "\n" not in str(error.value)


def test_a_bidirectional_encoder_is_refused_before_data_is_read(trained: Trained, tmp_path: Path) -> None:
    """The dictionaries exist, the data do not."""
    for name in ("dict.de.txt", "dict.en.txt"):
        (tmp_path / name).write_text((trained.data / name).read_text())
    with pytest.raises(UserError, match="--encoder-bidirectional"):
        run("fairseq-train", *training(tmp_path, tmp_path, "--encoder-bidirectional", "-s", "de", "-t", "en"))


def test_an_empty_data_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"there is no data set in {tmp_path}"):
        run("fairseq-train", *training(tmp_path, tmp_path / "save"))


def test_a_missing_dictionary(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "dict.de.txt").write_text((trained.data / "dict.de.txt").read_text())
    with pytest.raises(UserError, match=f"there is no dictionary {tmp_path}/dict.en.txt"):
        run("fairseq-train", *training(tmp_path, tmp_path / "save", "-s", "de", "-t", "en"))


@pytest.mark.parametrize("sizes, split", [((0, 3), "train"), ((3, 0), "valid")])
def test_an_empty_data_set(sizes: Any, split: str, tmp_path: Path) -> None:
    data = commands.make_corpus(tmp_path / "data", *sizes)
    with pytest.raises(UserError, match=f"the data set '{split}' in .* is empty"):
        run("fairseq-train", *training(data, tmp_path / "save"))


def test_a_mistake_leaves_no_traceback(tmp_path: Path) -> None:
    finished = commands.shell("fairseq-train", *training(tmp_path / "nowhere", tmp_path / "save"))
    assert finished.returncode == 1 and "Traceback" not in finished.stderr + finished.stdout
    assert finished.stderr.splitlines()[-1].startswith(f"there is no data directory {tmp_path}/nowhere")
