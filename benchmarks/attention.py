"""alpha, forward and backward, against fairseq's formula in autograd and the published closed form."""

import importlib.util
from pathlib import Path
from typing import Any, Callable, List

import fairseq
import torch
from torch import Tensor

from benchmarks.harness import Bar, Check, NotMeasuredError, Outcome, Row, Size, compare
from fairseq_milk.functional import expected_alignment, expected_alignment_parallel

B, I = 64, 30
NOTE = (
    "'exact' takes the energies of all steps in one call, as fairseq's function does; a decoder, whose next energies "
    "depend on this step, calls it step by step"
)


def exclusive_cumprod() -> Callable[..., Tensor]:
    """Import fairseq's own function from its examples, which are not a package."""
    path = Path(fairseq.__file__).parent / "examples" / "simultaneous_translation" / "utils" / "functions.py"
    if not path.exists():
        raise NotMeasuredError(f"this fairseq has no {path}")
    spec = importlib.util.spec_from_file_location("fairseq_simultaneous_functions", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Tensor] = module.exclusive_cumprod
    return function


def first_alpha(e: Tensor) -> Tensor:
    """The head stands on the first token.  e: (B, I, J) -> (B, J)."""
    alpha = torch.zeros_like(e[:, 0])
    alpha[:, 0] = 1.0
    return alpha


def at_once(preserve_mass: bool) -> Callable[[Tensor], Tensor]:
    """alpha of all target steps in one call.  e: (B, I, J) -> (B, I, J)."""
    return lambda e: expected_alignment(e, first_alpha(e), preserve_mass=preserve_mass)


def step_by_step(step: Callable[..., Tensor], preserve_mass: bool) -> Callable[[Tensor], Tensor]:
    """The same step by step, as a recurrent decoder needs it."""

    def run(e: Tensor) -> Tensor:
        alpha, rows = first_alpha(e), []
        for e_i in e.unbind(1):
            alpha = step(e_i, alpha, preserve_mass=preserve_mass)
            rows.append(alpha)
        return torch.stack(rows, dim=1)

    return run


def fairseqs(cumprod: Callable[..., Tensor], eps: float = 1e-6) -> Callable[[Tensor], Tensor]:
    """fairseq's formula before its compiled operator, which has no gradient: cumprod for all steps, then a loop."""

    def run(e: Tensor) -> Tensor:
        p = torch.sigmoid(e)
        survival = cumprod(1 - p, dim=2, eps=eps)
        clipped = survival.clamp(eps, 1.0)
        alpha, rows = first_alpha(p), []
        for i in range(p.size(1)):
            alpha = (p[:, i] * survival[:, i] * (alpha / clipped[:, i]).cumsum(1)).clamp(0, 1.0)
            rows.append(alpha)
        return torch.stack(rows, dim=1)

    return run


def alpha_row(J: int) -> Row:
    def measure(size: Size) -> Outcome:
        torch.manual_seed(1)
        energies = torch.randn(B, I, J) - 1
        weight = torch.randn(B, I, J)

        def run(alphas: Callable[[Tensor], Tensor]) -> Callable[[], Tensor]:
            def step() -> Tensor:
                e = energies.clone().requires_grad_()
                (alphas(e) * weight).sum().backward()
                assert e.grad is not None
                return e.grad

            return step

        alphas = {
            "exact": at_once(False),
            "fairseq": fairseqs(exclusive_cumprod()),
            "published": step_by_step(expected_alignment_parallel, False),
            "exact, step by step": step_by_step(expected_alignment, False),
            "exact, mass kept": at_once(True),
            "published, mass kept": step_by_step(expected_alignment_parallel, True),
        }
        times = compare({name: run(alpha) for name, alpha in alphas.items()}, size, 0.5)
        checks = times.check("exact", "fairseq", Bar("<", 1.0)) + times.check("exact", "published", Bar("<=", 1.2))
        checks += times.check("exact, mass kept", "published, mass kept", Bar("<=", 1.2), "the same, mass kept")
        checks += times.check("exact, step by step", "published", None)
        checks += [Check(f"error of {name}", error(energies, alphas[name]), None, "") for name in ("exact", "fairseq")]
        return Outcome(checks, times.figures(), NOTE)

    what = f"alpha of {I} target steps, exact, forward+backward, B={B} J={J}"
    return Row(f"alpha-{J}", what, "fairseq's formula in autograd; the published closed form", measure)


def error(energies: Tensor, alphas: Callable[[Tensor], Tensor]) -> float:
    """The largest error of alpha in two sentences, against the recurrence in float64."""
    p = torch.sigmoid(energies[:2].double())
    alpha, rows = first_alpha(p), []
    for i in range(p.size(1)):
        row, q = [], torch.zeros_like(alpha[:, 0])
        for j in range(p.size(2)):
            q = q + alpha[:, j]
            row.append(p[:, i, j] * q)
            q = q - row[-1]
        alpha = torch.stack(row, dim=1)
        rows.append(alpha)
    return float((alphas(energies[:2]) - torch.stack(rows, dim=1)).abs().max())


ROWS: List[Row] = [alpha_row(J) for J in (30, 100, 300, 1000)]
