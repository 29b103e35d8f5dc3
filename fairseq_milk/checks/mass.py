"""Does alpha keep its probability?  The published closed form loses it when the head waits and then writes a burst."""

from typing import Any, Tuple

import torch
from torch import Tensor

from ..functional import expected_alignment
from .energies import by_schedule, changed_energies
from .finding import FAIL, OK, WARN, Finding, without_head
from .subject import Subject

TOLERANCE = 0.01  # of a row's probability
TOO_MUCH = 0.1  # of the worst row's


def check_mass(subject: Subject) -> Finding:
    """Rows of alpha sum to 1 and are those of the exact alignment of their energies, under the noise of training.

    The worst row is judged: bursts are few, and their delays are what the latency is about.  That holds for
    --published-alignment too, an option to repeat published results with, which fails where it is wrong.
    """
    if not subject.learned:
        return without_head("mass")
    stop: Any = subject.attention.stop
    alpha, src_lengths, energies = noisy_schedule(subject)
    lost = (1 - alpha.sum(-1)).abs().amax(1)[subject.written]
    misplaced = missing(alpha, energies, src_lengths, stop.preserve_mass).amax(1)[subject.written]
    share, worst = float(misplaced.mean()), float(misplaced.max())
    figures = {
        "lost": float(lost.mean()),
        "worst_lost": float(lost.max()),
        "misplaced": share,
        "worst_misplaced": worst,
    }
    noise = f"under the noise of training (n = {stop.final_noise:g})"
    if not worst < TOLERANCE:
        few = share < TOLERANCE and worst < TOO_MUCH
        sentence = (
            f"{noise} {share:.1%} of the stop probability, {worst:.1%} of the worst row's, is not where the energies "
            f"put it{'' if few else ', so the latency is trained on fiction'}: use the exact alignment (no "
            "--published-alignment)"
        )
        return Finding("mass", WARN if few else FAIL, sentence, figures)
    if figures["worst_lost"] < TOLERANCE:
        sentence = f"{noise} every row of alpha keeps its probability (at worst {figures['worst_lost']:.1g} is lost)"
        return Finding("mass", OK, sentence, figures)
    sentence = (
        f"{noise} {figures['lost']:.1%} of the stop probability, {figures['worst_lost']:.1%} of the worst row's, runs "
        "off the end of the source (--unpreserved-mass)"
    )
    return Finding("mass", WARN, sentence, figures)


@torch.no_grad()
def noisy_schedule(subject: Subject) -> Tuple[Tensor, Tensor, Tensor]:
    """alpha of each schedule: (B, S, I, J), |x|: (B,) and the energies with their noise: (B, S, I, J)."""
    noise, size = torch.Generator().manual_seed(1), float(subject.attention.stop.final_noise)  # type: ignore[arg-type]

    def with_noise(e: Tensor) -> Tensor:
        return e + size * torch.randn(e.shape, generator=noise, dtype=e.dtype)

    with changed_energies(subject.heads, with_noise) as energies:
        schedule = subject.schedule(hard=False)
    return schedule["alphas"], schedule["src_lengths"], by_schedule(energies)


def missing(alpha: Tensor, energies: Tensor, src_lengths: Tensor, preserve_mass: bool) -> Tensor:
    """sum_j max(0, exact_ij - alpha_ij), exact_i the exact alignment of the energies.  (B, S, I, J) -> (B, S, I)."""
    start = torch.zeros_like(alpha[..., 0, :])
    start[..., 0] = 1.0
    exact = expected_alignment(energies, start, src_lengths, preserve_mass)
    return (exact - alpha).clamp(min=0).sum(-1)
