"""`fairseq-train`, ours against fairseq's `lstm`: the same batches, layers, sizes, loss and optimiser.

Each model is built and updated by fairseq's own task and trainer from the command line that is given here, in a
process of its own, as `fairseq-train` runs; the processes take turns batch by batch.  In a single process the peer,
which spends a quarter of its time on page faults, would reuse memory that our model has freed.
"""

import logging
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import numpy as np
import torch
from fairseq import options, tasks, utils
from fairseq.data import iterators
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.trainer import Trainer

from benchmarks.corpus import corpus
from benchmarks.harness import ROOT, Bar, Check, NotMeasuredError, Outcome, Row, Size, compare_processes
from fairseq_milk.functional.product import bfloat16_products

COMMON = """--optimizer adam --lr 0.001 --clip-norm 5 --label-smoothing 0.1 --dropout 0.2 --seed 1 --cpu
    --num-workers 0 --disable-validation --no-save --required-batch-size-multiple 1 -s de -t en"""
OURS = f"""--user-dir {ROOT / "fairseq_milk"} --task simultaneous_translation --arch milk_rnmt
    --criterion latency_augmented"""
PEER = "--task translation --arch lstm --criterion label_smoothed_cross_entropy"

# attention [and --product-precision] -> words per second, divided by the peer's
BARS = {"soft": 1.3, "milk": 1.15}
BF16_BARS = {"soft bf16": 1.7, "milk bf16": 1.6}

TRIED = (
    "With AVX512 the matrix products of an update alone take 1,730 of its 2,130 ms (150 GFLOP, 82 of them in the "
    "output layer, at 78 to 90 GFLOP/s where a large square product has 94), and those of the peer 1,750 of 2,410: "
    "what is left to us, 400 ms, is the peer's 660 with layer norm on top, and 1.3 would need 120. The largest of "
    "it, in ms: dropout masks 32, gates 30, Adam 25, sums of biases 22, softmax 22, bmm of the attention 17. Tried "
    "in the output layer: words without padding (kept: 15 % fewer rows), chunks of 128 to 1,024 rows (256 to 512 "
    "within 2 %), the bias in the product (no gain), softmax in place (2 to 4 % of the layer), torch's private "
    "entry to oneDNN (7 % of the layer, 3 % of an update); elsewhere: fused Adam (1 %). With AVX2 and all models in "
    "one process the ratios were 1.27 and 1.20 (commit 4aaac87)."
)


def command_line(name: str, data: Path, layers: int, hidden: int, max_tokens: int) -> List[str]:
    """The arguments of `fairseq-train` for "lstm", or an attention, or an attention and a type of products.

    The output layer is V x 2H in all of them.
    """
    if name == "lstm":
        sizes = " ".join(
            f"--{side}-layers {layers} --{side}-embed-dim {hidden} --{side}-hidden-size {hidden}"
            for side in ("encoder", "decoder")
        )
        specific = f"{PEER} {sizes} --decoder-out-embed-dim {2 * hidden}"
    else:
        attention, _, precision = name.partition(" ")
        latency = "--latency-weight 0.1 --latency-after 0" if attention == "milk" else ""
        sizes = f"--encoder-layers {layers} --decoder-layers {layers} --embed-dim {hidden} --hidden-size {hidden}"
        products = f"--product-precision {precision}" if precision else ""
        specific = f"{OURS} --attention {attention} {sizes} --energy-dim {hidden} {latency} {products}"
    return f"{data} {specific} {COMMON} --max-tokens {max_tokens}".split()


def build_trainer(arguments: List[str]) -> Trainer:
    """Set up a training as `fairseq-train` does."""
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    np.random.seed(cfg.common.seed)
    utils.set_torch_seed(cfg.common.seed)
    task = tasks.setup_task(cfg.task)
    return Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))


class Training:
    """Updates one by one, as `fairseq-train` makes them."""

    def __init__(self, arguments: List[str]) -> None:
        self.trainer = build_trainer(arguments)
        self.samples = self._forever()

    def _forever(self) -> Iterator[Any]:
        epoch = self.trainer.get_train_iterator(epoch=1)
        while True:
            self.trainer.begin_epoch(epoch.next_epoch_idx)
            yield from iterators.GroupedIterator(epoch.next_epoch_itr(shuffle=True), 1)

    def update(self) -> None:
        samples = next(self.samples)
        with metrics.aggregate("train_inner"):
            self.trainer.train_step(samples)

    def batches(self, count: int) -> List[List[int]]:
        """The sentence ids of the next `count` batches."""
        return [samples[0]["id"].tolist() for samples in islice(self.samples, count)]


def updates(arguments: List[str]) -> Callable[[], None]:
    logging.disable(logging.INFO)
    return Training(arguments).update


def measure_bf16(size: Size) -> Outcome:
    """Measure with products in bfloat16; a quick run does not need a processor with instructions for it."""
    if not size.quick and not bfloat16_products(torch.device("cpu")):
        raise NotMeasuredError("this processor has no instructions for bfloat16")
    return compare_words(size, BF16_BARS)


def measure(size: Size) -> Outcome:
    return compare_words(size, BARS)


def compare_words(
    size: Size,
    bars: Dict[str, float],
    peer: str = "lstm",
    command_line: Callable[..., List[str]] = command_line,
    layers: int = 2,
) -> Outcome:
    data, what = corpus(size)
    sizes: Dict[str, int] = dict(layers=layers, hidden=size.pick(256, 32), max_tokens=size.pick(4000, 500))
    commands = {name: command_line(name, data, **sizes) for name in (*bars, peer)}
    batches = [Training(arguments).batches(5) for arguments in commands.values()]
    assert all(batch == batches[0] for batch in batches), "not the same batches"
    times = compare_processes({name: partial(updates, arguments) for name, arguments in commands.items()}, size, 5)
    figures, checks = times.figures(), []
    words = sum(map(len, batches[0])) / len(batches[0])
    for name, limit in bars.items():
        checks.append(Check(f"{name} / {peer}, words per CPU second", times.ratio(peer, name), Bar(">=", limit)))
        if times.wall[name]:
            checks.append(Check(f"{name} / {peer}, words per second, wall", times.ratio(peer, name, "wall")))
    return Outcome(checks, figures, f"{what}; {words:.0f} sentences per batch")


ROWS: List[Row] = [
    Row(
        "fairseq-train", "`fairseq-train` words per second, Multi30k, soft and MILk", "fairseq's `lstm`", measure, TRIED
    ),
    Row("fairseq-train-bf16", "the same with `--product-precision bf16`", "fairseq's `lstm` in float32", measure_bf16),
]
