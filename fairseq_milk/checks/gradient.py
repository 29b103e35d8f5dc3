"""Does the head learn?  Published code has an alignment without a backward: the schedule then stays where it began."""

from typing import Any, Callable, Dict, Iterable, List

import torch
from torch import Tensor

from ..functional import differentiable_average_lagging, expected_delays
from .finding import FAIL, OK, WARN, Finding, without_head
from .likelihood import nll_a_token
from .subject import Subject

EPSILON = 1e-8  # Adam's, the smaller of the usual ones: rnmt_adam has 1e-6


def check_gradient(subject: Subject) -> Finding:
    """Every parameter of the head gets a gradient from the likelihood, and one from the latency alone.

    One that Adam can use: its steps shrink where a gradient is below its epsilon.  That is for losses of the order of
    1; a model that knows its data by heart has small gradients everywhere, and its head need not have larger ones.
    """
    if not subject.learned:
        return without_head("gradient")
    terms: Dict[str, Callable[[Subject], Tensor]] = {"likelihood": nll_a_token, "latency": expected_dal}
    head = parameters_of_heads(subject.heads)
    norms = {term: gradient_norms(subject, loss, head) for term, loss in terms.items()}
    model = gradient_norms(subject, nll_a_token, dict(subject.model.named_parameters()))
    floor = EPSILON * min(1.0, total_norm(model.values()))
    for term, norm in norms.items():
        bad = [name for name, value in norm.items() if not floor < value < float("inf")]
        if bad:
            values = ", ".join(f"{name} {norm[name]:.2g}" for name in bad)
            sentence = f"the {term} gives these parameters of the head no usable gradient: {values} (norm)"
            if any(0 < norm[name] < floor for name in bad):
                sentence += f"; below Adam's epsilon ({floor:.1g}) they do not move: raise --energy-bias or --noise"
            return Finding("gradient", FAIL, sentence, norms)
    total = {term: total_norm(norm.values()) for term, norm in norms.items()}
    sentence = f"the head learns from the likelihood (norm {total['likelihood']:.2g}) and the latency"
    sentence += f" ({total['latency']:.2g})"
    if subject.latency_weight == 0:
        return Finding("gradient", WARN, f"{sentence}, but with --latency-weight 0 nothing makes it hurry", norms)
    return Finding("gradient", OK, sentence, norms)


def parameters_of_heads(heads: List[Any]) -> Dict[str, Tensor]:
    """By name, with the number of the layer if several decide."""
    if len(heads) == 1:
        return dict(heads[0].named_parameters())
    return {f"{index}.{name}": p for index, head in enumerate(heads, start=1) for name, p in head.named_parameters()}


def total_norm(norms: Iterable[float]) -> float:
    return float(sum(norm**2 for norm in norms) ** 0.5)


def gradient_norms(
    subject: Subject, loss: Callable[[Subject], Tensor], parameters_of: Dict[str, Tensor]
) -> Dict[str, float]:
    """||d loss / d parameter|| for each of these parameters in training mode, with noise and dropout; 0 for none."""
    names, parameters = zip(*parameters_of.items())
    subject.model.train()
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(1)
            value = loss(subject)
            learning = [p for p in parameters if p.requires_grad]
            if not value.requires_grad or not learning:
                return dict.fromkeys(names, 0.0)
            found = dict(zip(map(id, learning), torch.autograd.grad(value, learning, allow_unused=True)))
    finally:
        subject.model.eval()
    gradients = [found.get(id(p)) for p in parameters]
    return {name: 0.0 if g is None else float(g.norm()) for name, g in zip(names, gradients)}


def expected_dal(subject: Subject) -> Tensor:
    """The latency of the expected delays, DAL, a sentence."""
    schedule = subject.model(**subject.sample["net_input"], features_only=True)[1]
    g = expected_delays(schedule["alpha"])
    return differentiable_average_lagging(g, schedule["src_lengths"], subject.target_lengths).mean()
