"""The quality-latency plane: one curve per system, the Pareto front and, if known, the limit."""

import math
from typing import Any, List, Optional, Sequence, Tuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .axis_cut import apply_cut, find_cut
from .drawing import house_style, legend_label, literal
from .looks import display_name, style_of
from .plane_labels import label_points
from .points import Curves, Point, Range, as_points, pareto_front

STAR = "#F0C000"
ENTRIES = 6  # largest number of columns of the legend


def quality_latency_plane(
    systems: Curves,
    best: Optional[Point] = None,
    latency_name: str = "DAL (tokens)",
    quality_name: str = "BLEU",
    title: str = "",
    overlay: Optional[Curves] = None,
    size: Tuple[float, float] = (5.8, 4.2),
) -> Figure:
    """Draw one curve per system, and the Pareto front as a grey line of steps.  The legend is below.

        quality_latency_plane({"MILk": [(3.1, 38.2), (5.0, 40.1)], "wait-k": np.array([[3.0, 35.9], [6.1, 40.0]])})

    best: the limit, drawn as a star.  overlay: other curves to compare with, dashed and light, in the colours of the
    systems of the same name.  size: in inches, without the legend.
    """
    systems, overlay = as_points(systems), as_points(overlay or {})
    styles = style_of([*systems, *overlay])
    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        axes: Any = figure.add_subplot()
        drawn = [] if best is None else [_draw_best(axes, best)]
        drawn += [_draw_system(axes, name, points, *styles[name]) for name, points in systems.items()]
        drawn += [_draw_overlay(axes, name, points, *styles[name]) for name, points in overlay.items()]
        drawn += _draw_front(axes, pareto_front([p for points in systems.values() for p in points]))
        _draw_frame(axes, latency_name, quality_name, title, _latencies([*systems.values(), *overlay.values()], best))
        FigureCanvasAgg(figure)  # which knows the sizes of letters
        if drawn:
            _draw_legend(figure, drawn)
        figure.draw_without_rendering()  # settles the layout
        label_points(axes, systems, overlay, best, {name: colour for name, (colour, _) in styles.items()})
    return figure


def _draw_frame(axes: Any, latency_name: str, quality_name: str, title: str, latencies: Sequence[float]) -> None:
    axes.set_xlabel(literal(latency_name))
    axes.set_ylabel(literal(quality_name))
    if title:
        axes.set_title(literal(title), fontsize=11)
    axes.margins(x=0.1, y=0.08)
    cut = find_cut(latencies)
    if cut is not None:
        apply_cut(axes, cut)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _latencies(curves: Sequence[Sequence[Point]], best: Optional[Point]) -> List[float]:
    """All values on the horizontal axis."""
    points = [p for points in curves for p in points] + ([] if best is None else [best])
    return [x for p in points for x in (p.latency, *(p.latency_range or ()))]


def _draw_best(axes: Any, best: Point) -> Any:
    """Draw the star, and the region that no system with full quality can reach."""
    axes.axvline(best.latency, color="0.6", linewidth=0.9, linestyle=(0, (2, 3)), zorder=1)
    return axes.plot([best.latency], [best.quality], "*", color=STAR, markeredgecolor="black", markersize=17,
                     label=legend_label(best.label) or "best possible", zorder=6, clip_on=False)[0]  # fmt: skip


def _draw_system(axes: Any, name: str, points: Sequence[Point], colour: str, marker: str) -> Any:
    points = sorted(points, key=lambda p: p.place)
    return axes.errorbar(
        [p.latency for p in points],
        [p.quality for p in points],
        xerr=_bars([p.latency for p in points], [p.latency_range for p in points]),
        yerr=_bars([p.quality for p in points], [p.quality_range for p in points]),
        color=colour,
        marker=marker,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.5,
        elinewidth=0.9,
        capsize=2,
        label=legend_label(display_name(name)),
        zorder=4,
    )


def _draw_overlay(axes: Any, name: str, points: Sequence[Point], colour: str, marker: str) -> Any:
    places = sorted(p.place for p in points)
    (line,) = axes.plot([x for x, _ in places], [y for _, y in places], color=colour, marker=marker, markersize=4.5,
                        markerfacecolor="white", linewidth=1.0, linestyle=(0, (4, 2)), alpha=0.55,
                        label=legend_label(display_name(name)), zorder=3)  # fmt: skip
    return line


def _draw_front(axes: Any, front: Sequence[Point]) -> List[Any]:
    """Draw the front, unless it is a single point."""
    if len(front) < 2:
        return []
    lines: List[Any] = axes.step(*zip(*(p.place for p in front)), where="post", color="0.72", linewidth=3.0, alpha=0.45,
                                 solid_capstyle="round", label="Pareto front", zorder=2)  # fmt: skip
    return lines


def _draw_legend(figure: Figure, drawn: Sequence[Any]) -> None:
    """Draw the legend below the axes in as few rows as possible; the figure grows by its height."""
    for rows in range(math.ceil(len(drawn) / ENTRIES), len(drawn) + 1):
        columns = math.ceil(len(drawn) / rows)
        legend = figure.legend(handles=drawn, frameon=False, fontsize=9, loc="outside lower center", ncols=columns)
        size = legend.get_window_extent()
        if size.width <= figure.bbox.width or rows == len(drawn):
            figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)
            return
        legend.remove()


def _bars(values: Sequence[float], ranges: Sequence[Optional[Range]]) -> Optional[List[List[float]]]:
    """Lengths of the error bars below and above the values; None if there are none."""
    pairs = [(value, bounds or (value, value)) for value, bounds in zip(values, ranges)]
    below = [max(value - low, 0.0) for value, (low, _) in pairs]
    above = [max(high - value, 0.0) for value, (_, high) in pairs]
    return [below, above] if any(below + above) else None
