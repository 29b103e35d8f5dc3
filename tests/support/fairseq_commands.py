"""fairseq's own commands on a tiny corpus, in this process, which saves the import of fairseq, or in another one.

In this process `cli_main` is called with the command line, and the state that fairseq keeps between runs is reset.
"""

import contextlib
import io
import json
import logging
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional
from unittest import mock

import torch
from fairseq import checkpoint_utils
from fairseq.logging import metrics, progress_bar
from fairseq_cli import generate, interactive, preprocess, train, validate

import fairseq_milk
from examples.prepare.pipeline import log_files_closed

fairseq_milk.register()  # another test may have imported it before fairseq

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = str(ROOT / "fairseq_milk")
CRITERION = "latency_augmented_label_smoothed_cross_entropy"
SENTENCES = 37  # not a multiple of eight
COMMANDS = {
    "fairseq-preprocess": preprocess.cli_main,
    "fairseq-train": train.cli_main,
    "fairseq-validate": validate.cli_main,
    "fairseq-generate": generate.cli_main,
    "fairseq-interactive": interactive.cli_main,
}


class Finished(NamedTuple):
    stdout: str
    log: str

    @property
    def lines(self) -> List[str]:
        return self.stdout.splitlines() + self.log.splitlines()

    def json(self, key: str) -> List[Dict[str, Any]]:
        """The lines of --log-format json that have this key."""
        found = [json.loads(line[line.index("{") :]) for line in self.lines if "{" in line and f'"{key}"' in line]
        assert found, f"no {key} in the log:\n{self.log[-3000:]}"
        return found


@contextlib.contextmanager
def captured() -> Iterator[List[io.StringIO]]:
    """Capture standard output and the log."""
    stdout, log = io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(log), logging.getLogger()
    level, others = root.level, root.handlers[:]
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(stdout):
            yield [stdout, log]
    finally:
        root.handlers[:] = others
        root.setLevel(level)


def run(command: str, *arguments: Any) -> Finished:
    """Run a command in this process."""
    metrics.reset()
    checkpoint_utils.save_checkpoint.__dict__.pop("best", None)
    train.should_stop_early.__dict__.clear()
    progress_bar._tensorboard_writers.clear()
    with captured() as (stdout, log), log_files_closed("fairseq_cli.preprocess"):
        with mock.patch.object(sys, "argv", [command, *map(str, arguments)]):
            COMMANDS[command]()
    return Finished(stdout.getvalue(), log.getvalue())


def environment(**changes: str) -> Dict[str, str]:
    """The environment for a command: one thread, no warnings, and no variables of a distributed launcher."""
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    bin_dir = str(Path(sys.executable).parent)
    kept.update(PYTHONWARNINGS="ignore", OMP_NUM_THREADS="1", PATH=bin_dir + os.pathsep + kept.get("PATH", ""))
    return {**kept, **changes}


def start(*command: Any, **changes: str) -> "subprocess.Popen[str]":
    """Start a command in a process of its own."""
    pipe = subprocess.PIPE
    arguments = list(map(str, command))
    return subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, env=environment(**changes), cwd=ROOT)


def shell(*command: Any, **changes: str) -> "subprocess.CompletedProcess[str]":
    """Start a command and wait for it."""
    process = start(*command, **changes)
    try:
        stdout, stderr = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


# ---- the corpus -------------------------------------------------------------------------------------------------


def write_text(prefix: Path, sentences: int, seed: int) -> None:
    """A word-for-word language, a1 -> b1, of two to five words per sentence."""
    draw = random.Random(seed)
    numbers = [[draw.randrange(8) for _ in range(draw.randint(2, 5))] for _ in range(sentences)]
    for language, letter in (("de", "a"), ("en", "b")):
        lines = [" ".join(f"{letter}{n}" for n in sentence) for sentence in numbers]
        Path(f"{prefix}.{language}").write_text("".join(line + "\n" for line in lines))


def make_corpus(folder: Path, train_size: int = SENTENCES, valid_size: int = SENTENCES) -> Path:
    """Text in `folder`, fairseq's binary data in folder/bin, which is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {"train": train_size, "valid": valid_size, "test": SENTENCES}
    for seed, (split, size) in enumerate(sizes.items()):
        write_text(folder / split, size, seed)
    prefixes = [f"--{split}pref={folder / split}" for split in sizes]
    run("fairseq-preprocess", "-s", "de", "-t", "en", *prefixes, "--destdir", folder / "bin")
    return folder / "bin"


# ---- command lines ----------------------------------------------------------------------------------------------


RNMT, TRANSFORMER = "milk_rnmt_tiny", "milk_transformer_tiny"
SIZES = {RNMT: "--hidden-size 8 --energy-dim 8", TRANSFORMER: "--ffn-dim 16 --attention-heads 2"}


# the head and lambda from the first update, whatever the length of the training
HEAD = "--energy-bias -1 --head-pace 1 --head-after 0"
LATENCY = "--latency-after 0 --latency-ramp 0"


def training(data: Path, save_dir: Path, *more: Any, max_update: int = 6, arch: str = RNMT) -> List[str]:
    """The arguments of a `fairseq-train` that ends after some updates of eight sentences."""
    arguments = f"""{data} --user-dir {PLUGIN} --task simultaneous_translation --arch {arch}
        --criterion {CRITERION} --embed-dim 8 {SIZES[arch]}
        --optimizer rnmt_adam --lr 0.01 --lr-scheduler fixed --batch-size 8 --max-update {max_update}
        --save-dir {save_dir} --no-epoch-checkpoints --log-format json --log-interval 1 --num-workers 0
        --cpu --seed 3 {HEAD} {"" if "--criterion" in more else LATENCY}"""
    return arguments.split() + list(map(str, more))


def decoding(data: Path, checkpoint: Path, *more: Any) -> List[str]:
    """The arguments that fairseq-generate, fairseq-interactive and fairseq-validate share."""
    arguments = f"{data} --user-dir {PLUGIN} --task simultaneous_translation --path {checkpoint} --cpu"
    return arguments.split() + list(map(str, more))


def parameters(checkpoint: Path) -> Dict[str, torch.Tensor]:
    state: Dict[str, torch.Tensor] = torch.load(checkpoint)["model"]
    return state


def different(one: Dict[str, torch.Tensor], other: Dict[str, torch.Tensor]) -> Optional[str]:
    """The name of a parameter whose bits differ, None if there is none."""
    assert one.keys() == other.keys()
    return next((name for name in one if not torch.equal(one[name], other[name])), None)
