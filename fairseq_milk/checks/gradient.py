"""Does the head learn?  Published code has an alignment without a backward: the schedule then stays where it began."""

from typing import Callable, Dict

import torch
from torch import Tensor

from ..functional import differentiable_average_lagging, expected_delays
from .finding import FAIL, OK, WARN, Finding, without_head
from .likelihood import nll_a_token
from .subject import Subject


def check_gradient(subject: Subject) -> Finding:
    """Every parameter of the head gets a gradient from the likelihood, and one from the latency alone."""
    if subject.head is None:
        return without_head("gradient")
    terms: Dict[str, Callable[[Subject], Tensor]] = {"likelihood": nll_a_token, "latency": expected_dal}
    norms = {term: gradient_norms(subject, loss) for term, loss in terms.items()}
    for term, norm in norms.items():
        bad = [name for name, value in norm.items() if not 0 < value < float("inf")]
        if bad:
            values = ", ".join(f"{name} {norm[name]:g}" for name in bad)
            sentence = f"the {term} gives these parameters of the head no usable gradient: {values} (norm)"
            return Finding("gradient", FAIL, sentence, norms)
    total = {term: sum(value**2 for value in norm.values()) ** 0.5 for term, norm in norms.items()}
    sentence = f"the head learns from the likelihood (norm {total['likelihood']:.2g}) and the latency"
    sentence += f" ({total['latency']:.2g})"
    if subject.latency_weight == 0:
        return Finding("gradient", WARN, f"{sentence}, but with --latency-weight 0 nothing makes it hurry", norms)
    return Finding("gradient", OK, sentence, norms)


def gradient_norms(subject: Subject, loss: Callable[[Subject], Tensor]) -> Dict[str, float]:
    """||d loss / d parameter|| for each parameter of the head in training mode, with noise and dropout; 0 for none."""
    names, parameters = zip(*subject.head.named_parameters())
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
