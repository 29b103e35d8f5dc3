"""Tests the installed fairseq without the plugin for the flaws that the patches of `fairseq_milk.host` correct.

Run as a program, in a process that has never imported fairseq_milk; prints the flaws that it finds as JSON.
"""

import inspect
import io
import json
import logging
import shutil
import sys
import tarfile
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict
from unittest import mock

import numpy as np
import torch

LEVEL_BEFORE = logging.getLogger().level

from fairseq import checkpoint_utils, file_utils, options, scoring, tasks  # noqa: E402
from fairseq.criterions import CRITERION_REGISTRY  # noqa: E402
from fairseq.data import Dictionary, LanguagePairDataset, data_utils  # noqa: E402
from fairseq.file_io import PathManager  # noqa: E402
from fairseq.logging.meters import MetersDict  # noqa: E402
from fairseq.optim.amp_optimizer import AMPOptimizer  # noqa: E402
from fairseq.tasks.fairseq_task import LegacyFairseqTask  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402
from fairseq_cli import interactive, train  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

CRITERION = "latency_augmented_label_smoothed_cross_entropy"


def raises(work: Callable[[], object]) -> bool:
    try:
        work()
    except Exception:
        return True
    return False


def damage_is_not_noticed(folder: Path) -> bool:
    path, parameter = folder / "model.pt", torch.arange(1000.0)
    extra = {"train_iterator": {"epoch": 1}}
    history = [{"optimizer_name": "a", "lr_scheduler_state": {}, "num_updates": 1}]
    state = {"model": {"w": parameter}, "cfg": {}, "optimizer_history": history, "extra_state": extra}
    torch.save(state, path)
    content = path.read_bytes()
    place = content.index(parameter.numpy().tobytes()) + 402
    path.write_bytes(content[:place] + b"\x41" + content[place + 1 :])
    loaded = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    return not torch.equal(loaded["model"]["w"], parameter)


def options_are_evaluated(folder: Path) -> bool:
    mark = folder / "mark"
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    cfg = dict(_name="translation", task="multilingual_translation", left_pad_source=code, lang_pairs="de-en")
    raises(lambda: tasks.setup_task(Namespace(**cfg)))
    return mark.exists()


def meters_are_looked_up_among_all_names(folder: Path) -> bool:
    return raises(lambda: MetersDict().load_state_dict([(1, "loss", "a_meter_of_nobody", {})]))


def an_archive_is_removed(folder: Path) -> bool:
    archive = folder / "model.gz"
    with tarfile.open(archive, "w:gz") as file:
        for name in ("model/a", "model/b"):
            file.addfile(tarfile.TarInfo(name), io.BytesIO())
    file_utils.load_archive_file(str(archive))
    return not archive.is_file()


def configurations_are_refused_by_torch(folder: Path) -> bool:
    file = io.BytesIO()
    torch.save(OmegaConf.create({"a": 1}), file)
    file.seek(0)
    return raises(lambda: torch.load(file, map_location="cpu"))


def attempts_share_a_file(folder: Path) -> bool:
    save, calls = torch.save, []

    def unreliable(state: Any, file: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            file.write(b"half of it")
            raise OSError(28, "No space left on device")
        save(state, file)

    with mock.patch("torch.save", unreliable), mock.patch("time.sleep"):
        checkpoint_utils.torch_persistent_save({"w": torch.zeros(3)}, str(folder / "w.pt"))
    return raises(lambda: torch.load(folder / "w.pt"))


def an_interrupted_copy_leaves_half(folder: Path) -> bool:
    (folder / "new").write_bytes(b"new")
    (folder / "old").write_bytes(b"old")

    def half(source: str, target: str, **options: Any) -> None:
        Path(target).write_bytes(b"n")
        raise OSError(28, "No space left on device")

    with mock.patch.object(shutil, "copyfile", half):
        raises(lambda: PathManager.copy(str(folder / "new"), str(folder / "old"), overwrite=True))
    return (folder / "old").read_bytes() != b"old"


def sentences_are_dropped(folder: Path) -> bool:
    sizes = dict(max_tokens=None, max_sentences=8, required_batch_size_multiple=8)
    batches = data_utils.batch_by_size(np.arange(37), num_tokens_fn=lambda i: 5, **sizes)
    return sum(map(len, batches)) < 37


def batches_depend_on_the_epoch(folder: Path) -> bool:
    words = Dictionary()
    words.add_symbol("w")
    sentences = [torch.tensor([4] * (1 + n % 5) + [2]) for n in range(40)]
    data = LanguagePairDataset(sentences, np.array([len(s) for s in sentences]), words, shuffle=True)
    made = [LegacyFairseqTask(Namespace()).get_batch_iterator(data, max_sentences=4, epoch=e) for e in (1, 3)]
    first, third = ([list(map(int, batch)) for batch in iterator.frozen_batches] for iterator in made)
    return first != third


def standard_input_is_strict(folder: Path) -> bool:
    (folder / "text").write_bytes(b"good\nbad \xff\n")
    return raises(lambda: list(interactive.buffered_read(str(folder / "text"), 1)))


def the_parser_looks_at_the_command_line(folder: Path) -> bool:
    with mock.patch.object(sys, "argv", ["anything", "--user-dir", str(folder / "nowhere")]):
        return raises(options.get_training_parser)


def the_parser_has_other_defaults(folder: Path) -> bool:
    default = options.get_generation_parser().get_default
    found = [default(name) for name in ("scoring", "beam", "max_len_a", "required_batch_size_multiple")]
    return found == ["bleu", 5, 0, 8]


def an_ended_training_goes_on(folder: Path) -> bool:
    source = inspect.getsource(train.train)
    return source.index("trainer.train_step(") < source.index("should_stop") or "max_update" not in source


def a_scorer_knows_no_task(folder: Path) -> bool:
    return list(inspect.signature(scoring.build_scorer).parameters) == ["choice", "tgt_dict"]


def ranks_share_their_seed(folder: Path) -> bool:
    return "rank" not in inspect.getsource(Trainer._set_seed)


def gradients_are_unscaled_twice(folder: Path) -> bool:
    """It unscales torch's optimiser and steps the wrapper, which the scaler then unscales, too."""
    clip, step = inspect.getsource(AMPOptimizer.clip_grad_norm), inspect.getsource(AMPOptimizer.step)
    return "unscale_(self.optimizer)" in clip and "step(self.fp32_optimizer)" in step


def bfloat16_means_a_tpu(folder: Path) -> bool:
    arguments = [str(folder), "--arch", "lstm", "--bf16", "--cpu", "--max-tokens", "1"]
    return bool(options.parse_args_and_arch(options.get_training_parser(), arguments).tpu)


FLAWS: Dict[str, Callable[[Path], bool]] = {
    "checkpoint_utils.load_checkpoint_to_cpu": damage_is_not_noticed,
    "checkpoint_utils.load_model_ensemble_and_task": options_are_evaluated,
    "checkpoint_utils.load_checkpoint": meters_are_looked_up_among_all_names,
    "file_utils.load_archive_file": an_archive_is_removed,
    "torch.serialization.safe_globals": configurations_are_refused_by_torch,
    "checkpoint_utils.torch_persistent_save": attempts_share_a_file,
    "PathManager.copy": an_interrupted_copy_leaves_half,
    "AMPOptimizer.clip_grad_norm": gradients_are_unscaled_twice,
    "Trainer.__init__": bfloat16_means_a_tpu,
    "torch.manual_seed": ranks_share_their_seed,
    "CRITERION_REGISTRY": lambda folder: CRITERION in CRITERION_REGISTRY,
    "sys.excepthook": lambda folder: sys.excepthook is sys.__excepthook__,
    "parser.set_defaults": the_parser_has_other_defaults,
    "required_batch_size_multiple": sentences_are_dropped,
    "EpochBatchIterator.epoch": batches_depend_on_the_epoch,
    "EpochBatchIterator.next_epoch_itr": a_scorer_knows_no_task,
    "generation.print_step": lambda folder: options.get_generation_parser().get_default("print_step") is False,
    "sys.stdin": standard_input_is_strict,
    "SystemExit": an_ended_training_goes_on,
    "sys.argv": the_parser_looks_at_the_command_line,
    "logging": lambda folder: logging.getLogger().level < LEVEL_BEFORE,
}


def main() -> None:
    found = {}
    for name, flaw in FLAWS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = flaw(Path(folder))
    assert "fairseq_milk" not in sys.modules
    print(json.dumps(found))


if __name__ == "__main__":
    main()
