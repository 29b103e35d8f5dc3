"""The quality-latency plane: one curve a system, and, where it is known, the best that is possible."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by the colour-blind; markers tell them apart in print
STYLES: List[Tuple[str, str]] = [
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
]


class Point(NamedTuple):
    """One trained system on the plane."""

    latency: float
    quality: float
    label: str = ""
    latency_error: float = 0.0  # half width of the confidence interval
    quality_error: float = 0.0


def quality_latency_plane(
    systems: Dict[str, Sequence[Point]],
    best: Optional[Point] = None,
    latency_name: str = "DAL (tokens)",
    quality_name: str = "BLEU",
    title: str = "",
) -> Figure:
    """systems: name -> its points, drawn from left to right.  best: the limit, drawn as a star."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for (name, points), (colour, marker) in zip(systems.items(), _cycle(len(systems))):
        ordered = sorted(points)
        axes.errorbar(
            [p.latency for p in ordered],
            [p.quality for p in ordered],
            xerr=_errors([p.latency_error for p in ordered]),
            yerr=_errors([p.quality_error for p in ordered]),
            color=colour,
            marker=marker,
            linewidth=1.3,
            markersize=5,
            capsize=2,
            label=name,
        )
        for p in ordered:
            if p.label:
                text = p.label.replace("$", r"\$")
                axes.annotate(text, (p.latency, p.quality), xytext=(4, -10), textcoords="offset points", fontsize=7)
    if best is not None:
        axes.axvline(best.latency, color="0.7", linewidth=0.8, linestyle=":")
        axes.plot([best.latency], [best.quality], "*", color="#F0C000", markeredgecolor="black", markersize=14,
                  label=best.label or "best possible", zorder=5)  # fmt: skip
    axes.set_xlabel(latency_name)
    axes.set_ylabel(quality_name)
    axes.set_title(title, fontsize=10)
    axes.grid(color="0.92")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _cycle(count: int) -> List[Tuple[str, str]]:
    return [STYLES[i % len(STYLES)] for i in range(count)]


def _errors(values: List[float]) -> Optional[List[float]]:
    return values if any(values) else None
