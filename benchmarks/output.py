"""The output layer and the label-smoothed loss in one, against fairseq's projection, log-softmax and criterion."""

from typing import Callable, Dict, List, Tuple

import torch
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor
from torch.nn import functional as F

from benchmarks.harness import Bar, Check, Outcome, Row, Size, compare, peak_memory
from fairseq_milk.functional.output_loss import label_smoothed_nll

EPS, PAD = 0.1, 1
Sizes = Tuple[int, int, int]  # rows, features, words
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def ours(features: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    return label_smoothed_nll(features, weight, bias, target, EPS, PAD).loss


def theirs(features: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    """The computation of fairseq's model and criterion."""
    log_probabilities = utils.log_softmax(F.linear(features, weight, bias), dim=-1)
    return label_smoothed_nll_loss(log_probabilities, target, EPS, ignore_index=PAD)[0]


LOSSES: Dict[str, Loss] = {"ours": ours, "fairseq": theirs}


def step(name: str, sizes: Sizes) -> Callable[[], List[Tensor]]:
    """-> a function that returns the gradients of features, weight and bias."""
    rows, width, words = sizes
    torch.manual_seed(1)
    inputs = [torch.randn(rows, width), torch.randn(words, width) * 0.04, torch.zeros(words)]
    for tensor in inputs:
        tensor.requires_grad_()
    target = torch.randint(PAD + 1, words, (rows,))
    target[::10] = PAD

    def run() -> List[Tensor]:
        features, weight, bias = inputs
        gradients = torch.autograd.grad(LOSSES[name](features, weight, bias, target), inputs)
        return list(gradients)

    return run


def warm_step(name: str, sizes: Sizes) -> Callable[[], List[Tensor]]:
    step(name, (4, 8, 16))()
    return step(name, sizes)


def measure(size: Size) -> Outcome:
    sizes = size.pick((2048, 512, 32000), (512, 64, 4000))
    variants = {name: step(name, sizes) for name in LOSSES}
    difference = max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(variants["ours"](), variants["fairseq"]())
    )
    times = compare(variants, size)
    figures = times.figures()
    for name in LOSSES:
        figures[name]["peak MB"] = peak_memory(warm_step, name, sizes)
    memory = figures["ours"]["peak MB"] / figures["fairseq"]["peak MB"]
    checks = times.check("ours", "fairseq", Bar("<=", 0.85))
    checks.append(Check("ours / fairseq, peak memory", memory, Bar("<=", 0.5)))
    checks.append(Check("largest difference of the gradients, relative", difference, Bar("<=", 1e-5), ""))
    return Outcome(checks, figures)


ROWS: List[Row] = [
    Row("output-loss", "output layer + label-smoothed loss, V=32k, 2048 rows of 512", "fairseq's criterion", measure)
]
