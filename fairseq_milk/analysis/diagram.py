"""The paper's diagram of a sentence: attention, and how far the source has been read.

Source tokens are columns, target tokens rows.  The shade of a circle is the attention, a bold outline marks the last
token read, and a line the schedule: to the right for READ, downwards for WRITE.  Unread tokens are dots.
"""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..scoring.records import Record
from .arrays import Booleans, Integers, Matrix, Strings, as_lists
from .drawing import house_style, literal, visible
from .looks import ORANGE, display_name

EOS = "⟨/s⟩"
CELL = 0.32  # inches per token
LARGEST = 12.0  # size of the letters in points, for cells of this size
WIDEST = 30.0  # inches for all tokens, beyond which cells become smaller
LONGEST = 300  # largest number of tokens in a sentence
LETTERS = 24  # letters in a token; longer ones are cut
DARKEST = 0.8  # the shade of attention 1, light enough for the outline of the head
GAP = 0.1  # inches between the parts of a figure
DASHES = (0, (3, 2))
PATH, HEAD, READ, UNREAD, WRONG = "#9BC3E0", "#111111", "#B8B8B8", "#D0D0D0", "#C00000"


class Panel(NamedTuple):
    """One sentence as one system translated it, in lists, numpy arrays or torch tensors.

    source, target: tokens, with EOS if the delays count it.  delays: g_i, one per target token, at most len(source).
    attention: beta_i, one row per target token, as long as its prefix or as the source.  best: the lowest possible
    delays.  wrong: the target tokens to show as mistakes.
    """

    source: Strings
    target: Strings
    delays: Integers
    attention: Optional[Matrix] = None
    best: Optional[Integers] = None
    wrong: Optional[Booleans] = None
    title: str = ""

    @classmethod
    def from_record(cls, record: Record, title: str = "") -> "Panel":
        """The panel of a record, with EOS on both sides, if EOS was written."""
        target = [*record.hypothesis, EOS][: len(record.delays)]
        return cls([*record.source, EOS], target, record.delays, record.attention, title=title)

    def checked(self) -> "Panel":
        """The panel in lists; ValueError if it cannot be drawn."""
        panel = Panel(*map(as_lists, self))
        columns, rows = len(panel.source), len(panel.target)
        for name in ("delays", "attention", "best", "wrong"):
            values = getattr(panel, name)
            if values is not None and len(values) != rows:
                raise ValueError(f"one each is needed for {rows} target tokens, got {len(values)} {name}")
        if not rows:
            raise ValueError("a sentence without target tokens cannot be drawn")
        if max(columns, rows) > LONGEST:
            raise ValueError(f"a sentence of more than {LONGEST} tokens cannot be drawn")
        for name in ("delays", "best"):
            values = getattr(panel, name)
            if values is not None and not 0 <= min(values) <= max(values) <= columns:
                raise ValueError(f"{name} from {min(values)} to {max(values)} do not fit a source of {columns} tokens")
        return panel


def schedule_diagram(
    source: Strings,
    target: Strings,
    delays: Integers,
    attention: Optional[Matrix] = None,
    best: Optional[Integers] = None,
    wrong: Optional[Booleans] = None,
    title: str = "",
) -> Figure:
    """The diagram of one sentence; the arguments are those of `Panel`."""
    return schedule_diagrams([Panel(source, target, delays, attention, best, wrong, title)])


def schedule_diagrams(panels: Sequence[Panel], title: str = "") -> Figure:
    """The diagrams of several systems side by side."""
    panels = [panel.checked() for panel in panels]
    if not panels:
        raise ValueError("there is nothing to draw")
    tokens = max(sum(len(p.source) for p in panels), *(len(p.target) for p in panels))
    cell = min(CELL, WIDEST / tokens)
    font = min(LARGEST, LARGEST / CELL * cell)
    with house_style(), matplotlib.rc_context({"font.size": font}):
        figure = Figure()
        FigureCanvasAgg(figure)  # which knows the sizes of letters
        every: Any = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(every, panels):
            _draw(axes, panel, cell)
        heading = figure.suptitle(literal(title), y=1, va="top", fontsize=font + 1) if title else None
        _arrange(figure, every, cell, _legend(figure, panels, font, cell * (tokens + 8)), heading)
    return figure


def _arrange(figure: Figure, every: Sequence[Any], cell: float, legend: Any, heading: Any) -> None:
    """Give all cells the same size, and the figure the size of what is in it."""
    sizes = [(cell * abs(np.diff(a.get_xlim())[0]), cell * abs(np.diff(a.get_ylim())[0])) for a in every]
    margins = []
    for axes, (width, height) in zip(every, sizes):
        axes.set_position((0, 0, *((width, height) / figure.get_size_inches())))
        inner, outer = axes.get_window_extent(), axes.get_tightbbox()
        around = outer.x1 - inner.x1, inner.x0 - outer.x0, outer.y1 - inner.y1, inner.y0 - outer.y0
        margins.append([side / figure.dpi for side in around])
    below, across = _inches(legend)
    above = max(top for _, _, top, _ in margins) + (0.0 if heading is None else _inches(heading)[0] + GAP)
    deepest = max(height + bottom for (_, height), (_, _, _, bottom) in zip(sizes, margins))
    wide = sum(width + right + left + GAP for (width, _), (right, left, _, _) in zip(sizes, margins)) + GAP
    total = max(wide, across), above + deepest + below + 3 * GAP
    figure.set_size_inches(total)
    x = (total[0] - wide) / 2 + GAP
    for axes, (width, height), (right, left, _, _) in zip(every, sizes, margins):
        bottom = total[1] - GAP - above - height
        axes.set_position(((x + left) / total[0], bottom / total[1], width / total[0], height / total[1]))
        x += left + width + right + GAP


def _inches(artist: Any) -> Tuple[float, float]:
    """Height and width."""
    box = artist.get_window_extent()
    return box.height / artist.figure.dpi, box.width / artist.figure.dpi


def shown(token: str) -> str:
    """The label of a token: on one line, and cut to the largest length."""
    token = visible(token)
    return token if len(token) <= LETTERS else token[: LETTERS - 1] + "…"


def _draw(axes: Any, panel: Panel, cell: float) -> None:
    columns, rows, points = len(panel.source), len(panel.target), cell * 72
    head, steps = np.asarray(panel.delays) - 1, np.arange(rows)
    x, y = np.meshgrid(np.arange(columns), steps)
    read = x <= head[:, None]
    weights = attention_grid(panel.attention, rows, columns)
    axes.scatter(x[~read], y[~read], s=(0.08 * points) ** 2, color=UNREAD, linewidths=0, zorder=2)
    axes.plot(*staircase(head), color=PATH, linewidth=0.2 * points, solid_joinstyle="round", solid_capstyle="round",
              zorder=1)  # fmt: skip
    size = (0.58 * points) ** 2
    axes.scatter(x[read], y[read], s=size, c=1 - DARKEST * weights[read], cmap="gray", vmin=0, vmax=1,
                 edgecolors=READ, linewidths=0.03 * points, zorder=3)  # fmt: skip
    axes.scatter(head, steps, s=size, facecolors="none", edgecolors=HEAD, linewidths=0.1 * points, zorder=4)
    if panel.best is not None:
        edge = np.asarray(panel.best) - 0.5
        axes.step(np.append(edge, edge[-1]), np.arange(rows + 1) - 0.5, where="pre", color=ORANGE, linestyle=DASHES,
                  linewidth=1.4, zorder=5)  # fmt: skip
    _label(axes, panel)
    axes.set_xlim(min(-0.6, head.min() - 0.6), columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)


def _label(axes: Any, panel: Panel) -> None:
    axes.set_xticks(range(len(panel.source)), [literal(shown(token)) for token in panel.source], rotation=55, ha="left",
                    rotation_mode="anchor")  # fmt: skip
    axes.set_yticks(range(len(panel.target)), [literal(shown(token)) for token in panel.target])
    for text, wrong in zip(axes.get_yticklabels(), [] if panel.wrong is None else panel.wrong):
        if wrong:
            text.set_color(WRONG)
            text.set_fontweight("bold")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=2)
    axes.set_frame_on(False)
    if panel.title:
        axes.set_title(literal(display_name(panel.title)), pad=8, fontweight="bold")


def _legend(figure: Figure, panels: Sequence[Panel], font: float, width: float) -> Any:
    """The legend at the bottom, with as many entries beside each other as fit into this width in inches."""
    handles = [Line2D([], [], color=PATH, marker="o", markersize=7, markerfacecolor="white", markeredgecolor=HEAD,
                      markeredgewidth=1.6, linewidth=2.5, label="how far it has read")]  # fmt: skip
    if any(p.attention is not None for p in panels):
        label = "attention: the darker, the more"
        handles.append(Line2D([], [], color="0.25", marker="o", linestyle="", markersize=7.0, label=label))
    if any(p.best is not None for p in panels):
        handles.append(Line2D([], [], color=ORANGE, linestyle=DASHES, label="how far one must read"))
    if any(p.wrong is not None and any(p.wrong) for p in panels):
        handles.append(Line2D([], [], color=WRONG, marker="s", linestyle="", markersize=7.0, label="a wrong word"))
    columns = max(1, min(len(handles), int(width * 72 / (17 * font))))
    return figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, fontsize=font - 2)


def staircase(head: np.ndarray) -> List[np.ndarray]:
    """x and y of the schedule: in row i to the right up to head_i, then down to row i + 1."""
    return [np.repeat(head, 2)[:-1], np.repeat(np.arange(len(head)), 2)[1:]]


def attention_grid(attention: Optional[Matrix], rows: int, columns: int) -> np.ndarray:
    """(rows, columns) in [0, 1], zero where nothing is known."""
    weights = np.zeros((rows, columns))
    for i, row in enumerate(attention if attention is not None else []):
        values = np.asarray(row, dtype=float)[:columns]
        weights[i, : len(values)] = values
    return np.nan_to_num(weights).clip(0, 1)
