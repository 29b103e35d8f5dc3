"""What one run at the paper's size needs: parameters, floating-point operations, memory and time.

    python -m benchmarks.cost [--words 32000] [--lengths 28 98] [--tflops 9.3] [--utilisation 0.3] [--launch 8]

Counted on a CPU, on a few sentences: an update of the whole model runs under a `Meter`, which sees every operation of
forward and backward.  Two batch sizes separate what grows with the batch from what does not.  Nothing is measured on
a GPU: its speed is an assumption, which can be changed on the command line.
"""

import argparse
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from benchmarks import balance
from benchmarks.build import Shape, build_batch, build_criterion, build_model
from benchmarks.operations import computes

PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "addmm_": 1, "baddbmm": 1, "baddbmm_": 1}  # where the left factor is
BATCH = 4096  # sentence pairs per update
REPLICA = 128  # of them on each of the paper's GPUs
LONGEST = 98  # source and target tokens of the pairs of a training
FLOAT = 4  # bytes
STATE = 4  # floats per parameter: its value, its gradient and Adam's two moments


class Meter(TorchDispatchMode):
    """Counts operations other than views, the floating-point operations of products, and the bytes that are alive."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.flops = 0
        # torch 2.1 frees a storage without clearing Python's weak references: they would point to freed memory.
        self._made: List[Tuple[StorageWeakRef, int]] = []

    @property
    def alive(self) -> int:
        return sum(size for storage, size in self._made if not storage.expired())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = {storage._cdata for storage in storages((args, kwargs))}
        out = func(*args, **(kwargs or {}))
        self.operations += computes(func)
        name = func._overloadpacket.__name__
        if name in PRODUCTS:
            self.flops += 2 * out.numel() * args[PRODUCTS[name]].shape[-1]
        for storage in storages(out):
            if storage._cdata not in before:  # otherwise it is a view, or written in place
                self._made.append((StorageWeakRef(storage), storage.nbytes()))
        return out


def storages(values: Any) -> List[Any]:
    """The storages of the tensors among the values; a storage is alive as long as one of its tensors."""
    tensors = [value for value in tree_flatten(values)[0] if isinstance(value, Tensor)]
    return list({tensor.untyped_storage()._cdata: tensor.untyped_storage() for tensor in tensors}.values())


class Counts(NamedTuple):
    """Cost of one update of B sentences: floating-point operations, operations, and bytes kept for the backward."""

    flops: int
    operations: int
    kept: int


class Cost(NamedTuple):
    """Cost per sentence pair of `length` source and target tokens; `operations` is for any number of pairs."""

    length: int
    flops: float
    kept: float
    operations: int


def count(model: Any, shape: Shape) -> Counts:
    criterion, sample = build_criterion(), build_batch(shape)
    model.train()
    model.zero_grad(set_to_none=True)
    with Meter() as meter:
        loss = criterion(model, sample)[0]
        kept = meter.alive
        loss.backward()
    return Counts(meter.flops, meter.operations, kept)


def cost(model: Any, length: int, words: int) -> Cost:
    """Computed from a batch of two and a batch of four."""
    two, four = (count(model, Shape(B, length, words=words)) for B in (2, 4))
    return Cost(length, (four.flops - two.flops) / 2, (four.kept - two.kept) / 2, two.operations)


def parameters(model: Any) -> int:
    return sum(p.numel() for p in model.parameters())


# ---- the report -----------------------------------------------------------------------------------------------------


class Assumptions(NamedTuple):
    tflops: float  # peak of the GPU in the precision of the training
    utilisation: float  # the share of the peak that a recurrent model reaches
    launch: float  # the least microseconds per operation

    def seconds(self, one: Cost, sentences: int) -> float:
        """Seconds for forward and backward of a batch: arithmetic, or launching the operations if that is slower."""
        arithmetic = sentences * one.flops / (self.tflops * 1e12 * self.utilisation)
        return max(arithmetic, one.operations * self.launch * 1e-6)


def gigabytes(model: Any, one: Cost, sentences: int) -> float:
    """Weights with gradients and Adam's moments, the output layer's gradient while it is added up, and what is kept."""
    output = model.decoder.output.weight.numel()
    return ((STATE * parameters(model) + output) * FLOAT + sentences * one.kept) / 1e9


def waiting(gpus: int, update_freq: int, pairs: int) -> float:
    """Work of the slowest GPU over that of the mean one, with --grouped-shuffling and lengths like those of WMT."""
    corpus = balance.like_wmt(pairs).up_to(LONGEST)
    return balance.imbalance(corpus, REPLICA, gpus, grouped=True, update_freq=update_freq)


def report(model: Any, costs: Sequence[Cost], assumed: Assumptions, pairs: int) -> List[str]:
    mean = costs[0]
    update = assumed.seconds(mean, REPLICA)
    lines = [
        f"- parameters: {parameters(model) / 1e6:.1f} million, {STATE * parameters(model) * FLOAT / 1e9:.2f} GB with "
        "gradients and Adam's moments in float32",
        f"- a sentence pair of {mean.length} + {mean.length} tokens: {mean.flops / 1e9:.1f} GFLOP forward and "
        f"backward, {mean.flops / mean.length / 1e9:.2f} per target token",
        f"- an update of {BATCH}: {BATCH * mean.flops / 1e12:.0f} TFLOP",
        f"- operations of a forward and backward, whatever the batch size: {mean.operations:,}",
        "",
        f"| {'length':>6} | kept, MB per pair | " + " | ".join(f"{B} pairs, GB" for B in SPLITS) + " |",
        "|---|---|" + "---|" * len(SPLITS),
    ]
    for one in costs:
        cells = " | ".join(f"{gigabytes(model, one, B):.1f}" for B in SPLITS)
        lines.append(f"| {one.length} | {one.kept / 1e6:.1f} | {cells} |")
    lines += [
        "",
        f"At {assumed.tflops:g} TFLOPS, {assumed.utilisation:.0%} of them used and {assumed.launch:g} microseconds per "
        f"operation, {REPLICA} pairs take {update:.2f} s:",
        "",
        "| GPUs | `--batch-size` | `--update-freq` | slowest / mean GPU | s per update | hours, 10,000 updates |",
        "|---|---|---|---|---|---|",
    ]
    for gpus in (32, 16, 8, 4, 2, 1):
        steps = BATCH // REPLICA // gpus
        slowest = waiting(gpus, steps, pairs)
        seconds = steps * update * slowest
        lines.append(f"| {gpus} | {REPLICA} | {steps} | {slowest:.2f} | {seconds:.2f} | {seconds * 1e4 / 3600:.1f} |")
    return lines


SPLITS = (128, 64, 32, 16)


def main(given: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="What one run at the paper's size needs.")
    parser.add_argument("--words", type=int, default=32000, help="types of the dictionary (32000)")
    parser.add_argument("--lengths", type=int, nargs="+", default=[28, 98], help="tokens per sentence (28 98)")
    parser.add_argument("--layers", type=int, nargs=2, default=[6, 8], help="of encoder and decoder (6 8)")
    parser.add_argument("--hidden", type=int, default=512, help="units of a layer (512)")
    parser.add_argument("--tflops", type=float, default=9.3, help="of the GPU at its best (9.3: a P100 in float32)")
    parser.add_argument("--utilisation", type=float, default=0.3, help="the share that is reached (0.3)")
    parser.add_argument("--pairs", type=int, default=400_000, help="of the corpus whose batches are simulated (400000)")
    parser.add_argument("--launch", type=float, default=8.0, help="microseconds per operation (8)")
    args = parser.parse_args(given)
    layers = dict(zip(("encoder_layers", "decoder_layers"), args.layers))
    model = build_model("milk", Shape(1, 1, words=args.words, hidden=args.hidden), **layers)
    costs = [cost(model, length, args.words) for length in args.lengths]
    print("\n".join(report(model, costs, Assumptions(args.tflops, args.utilisation, args.launch), args.pairs)))
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    raise SystemExit(main())
