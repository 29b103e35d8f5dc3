"""Does alpha sum to 1?  The published closed form loses mass when the head waits and then writes several tokens."""

from typing import Any, Tuple

import torch
from torch import Tensor

from ..functional import expected_alignment
from .energies import by_schedule, changed_energies
from .finding import FAIL, OK, WARN, WITHOUT_HEAD, Finding
from .subject import Subject

TOLERANCE = 0.01  # probability that a row may lose
TOO_MUCH = 0.1  # probability lost in the worst row above which the check fails


def check_mass(subject: Subject) -> Finding:
    """Rows of alpha sum to 1 and equal the exact alignment of their energies, with the noise of training.

    The worst row decides: few rows lose mass, but their delays matter most.  --published-alignment, the option for
    replicating published results, is checked in the same way.
    """
    if not subject.learned:
        return WITHOUT_HEAD
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
    noise = f"with the noise of training (n = {stop.final_noise:g})"
    if not worst < TOLERANCE:
        few = share < TOLERANCE and worst < TOO_MUCH
        sentence = (
            f"{noise} {share:.1%} of the stop probability, {worst:.1%} of the worst row's, is not where the energies "
            f"put it{'' if few else ', so the latency is computed from wrong delays'}: use the exact alignment (no "
            "--published-alignment)"
        )
        return Finding(WARN if few else FAIL, sentence, figures)
    if figures["worst_lost"] < TOLERANCE:
        sentence = f"{noise} every row of alpha keeps its probability (at worst {figures['worst_lost']:.1g} is lost)"
        return Finding(OK, sentence, figures)
    sentence = (
        f"{noise} {figures['lost']:.1%} of the stop probability, {figures['worst_lost']:.1%} of the worst row's, runs "
        "past the end of the source (--unpreserved-mass)"
    )
    return Finding(WARN, sentence, figures)


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
