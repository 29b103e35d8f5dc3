"""The picture of docs/explanation/exact-alpha.md: what the published closed form of alpha loses.

python scripts/draw_exact_alpha.py --out docs/images/exact-alpha.png
"""

import argparse
from pathlib import Path
from typing import List, Tuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from fairseq_milk.analysis.drawing import house_style, save
from fairseq_milk.functional import expected_alignment, expected_alignment_parallel, expected_delays

MOST_PASSED = 40
PROBABILITIES = (0.5, 0.7, 0.9, 0.99)
PASSED, PROBABILITY, AHEAD = 12, 0.9, 8  # of the row that is shown


def after_a_wait(passed: int, p: float, ahead: int) -> Tuple[Tensor, Tensor]:
    """Energies and alpha_{i-1} of a head that has passed `passed` tokens; it stops at any token with probability p."""
    e = torch.full((1, passed + ahead), torch.tensor(p, dtype=torch.float64).logit().item())
    alpha_prev = torch.zeros(1, passed + ahead)
    alpha_prev[0, passed] = 1.0
    return e, alpha_prev


def kept(p: float) -> List[float]:
    """The share of the row that the closed form keeps, for each number of passed tokens."""
    shares = []
    for passed in range(MOST_PASSED + 1):
        e, alpha_prev = after_a_wait(passed, p, AHEAD)
        exact = expected_alignment(e, alpha_prev, preserve_mass=False).sum()
        published = expected_alignment_parallel(e, alpha_prev, preserve_mass=False).sum()
        shares.append(float(published / exact))
    return shares


def draw() -> Figure:
    with house_style():
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.axhline(1, color="black")
        left.text(MOST_PASSED, 0.98, "exact", ha="right", va="top")
        for p in PROBABILITIES:
            shares = kept(p)
            (line,) = left.plot(range(MOST_PASSED + 1), shares)
            lost = next(passed for passed, share in enumerate(shares) if share < 0.5)
            left.text(lost + 0.6, 0.5, f"p = {p}", color=line.get_color(), rotation=90, va="center")
        left.set(xlabel="tokens passed, each with probability p of stopping", ylabel="share of the row that is kept")
        e, alpha_prev = after_a_wait(PASSED, PROBABILITY, AHEAD)
        j = torch.arange(1, e.size(1) + 1)
        forms = {"exact": expected_alignment, "closed form": expected_alignment_parallel}
        for offset, colour, (name, form) in zip((-0.2, 0.2), ("black", "C2"), forms.items()):
            alpha = form(e, alpha_prev)[0]
            right.bar((j + offset).tolist(), alpha.tolist(), 0.4, color=colour)
            label = f"{name}:\nexpected delay\n{float(expected_delays(alpha)):.1f} "
            right.text(int(alpha.argmax()) + 0.4, float(alpha.max()), label, color=colour, ha="right", va="top")
        right.set(xlabel=f"source token j (the head stands on {PASSED + 1})", ylabel="alpha of the next target token")
        right.set_xticks([1, 5, 10, PASSED + 1, e.size(1)])
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw what the published closed form of alpha loses.")
    parser.add_argument("--out", type=Path, required=True, help="the picture: .png, .svg or .pdf")
    out = parser.parse_args().out
    for path in save(draw(), out.with_suffix(""), [out.suffix[1:]]):
        print(path)


if __name__ == "__main__":
    main()
