"""Does the head get a gradient?  Published code has an alignment without a backward, so its schedule never changes."""

from typing import Any, Callable, Dict, Iterable, List

import torch
from torch import Tensor

from ..functional import differentiable_average_lagging, expected_delays
from .finding import FAIL, OK, WARN, WITHOUT_HEAD, Finding
from .likelihood import nll_per_token
from .subject import Subject

EPSILON = 1e-8  # the default of Adam; rnmt_adam has 1e-6


def check_gradient(subject: Subject) -> Finding:
    """Every parameter of the head gets a usable gradient from the likelihood, and one from the latency alone.

    A gradient is usable if it is above Adam's epsilon, below which Adam's steps shrink.  A model that has memorised its
    data has small gradients everywhere; the limit is then lowered in proportion.
    """
    if not subject.learned:
        return WITHOUT_HEAD
    terms: Dict[str, Callable[[Subject], Tensor]] = {"likelihood": nll_per_token, "latency": expected_dal}
    head = parameters_of_heads(subject.heads)
    norms = {term: gradient_norms(subject, loss, head) for term, loss in terms.items()}
    model = gradient_norms(subject, nll_per_token, dict(subject.model.named_parameters()))
    floor = EPSILON * min(1.0, total_norm(model.values()))
    for term, norm in norms.items():
        bad = [name for name, value in norm.items() if not floor < value < float("inf")]
        if bad:
            values = ", ".join(f"{name} {norm[name]:.2g}" for name in bad)
            sentence = f"the {term} gives these parameters of the head no usable gradient: {values} (norm)"
            if any(0 < norm[name] < floor for name in bad):
                sentence += f"; below Adam's epsilon ({floor:.1g}) they do not change: raise --energy-bias or --noise"
            return Finding(FAIL, sentence, norms)
    likelihood, latency = (total_norm(norm.values()) for norm in norms.values())
    sentence = f"the head learns from the likelihood (norm {likelihood:.2g}) and the latency ({latency:.2g})"
    if subject.latency_weight == 0:
        return Finding(WARN, f"{sentence}, but with --latency-weight 0 nothing reduces the latency", norms)
    return Finding(OK, sentence, norms)


def parameters_of_heads(heads: List[Any]) -> Dict[str, Tensor]:
    """The parameters of the heads by name, preceded by the number of the layer if there are several heads."""
    if len(heads) == 1:
        return dict(heads[0].named_parameters())
    return {f"{index}.{name}": p for index, head in enumerate(heads, start=1) for name, p in head.named_parameters()}


def total_norm(norms: Iterable[float]) -> float:
    return float(sum(norm**2 for norm in norms) ** 0.5)


def gradient_norms(
    subject: Subject, loss: Callable[[Subject], Tensor], parameters: Dict[str, Tensor]
) -> Dict[str, float]:
    """||d loss / d parameter|| for each parameter in training mode, with noise and dropout; 0 without a gradient."""
    norms = dict.fromkeys(parameters, 0.0)
    learning = {name: p for name, p in parameters.items() if p.requires_grad}
    subject.model.train()
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(1)
            value = loss(subject)
            if value.requires_grad and learning:
                gradients = torch.autograd.grad(value, list(learning.values()), allow_unused=True)
                norms.update((name, float(g.norm())) for name, g in zip(learning, gradients) if g is not None)
    finally:
        subject.model.eval()
    return norms


def expected_dal(subject: Subject) -> Tensor:
    """DAL of the expected delays, averaged over the sentences."""
    schedule = subject.model(**subject.sample["net_input"], features_only=True)[1]
    g = expected_delays(schedule["alpha"])
    return differentiable_average_lagging(g, schedule["src_lengths"], subject.target_lengths).mean()
