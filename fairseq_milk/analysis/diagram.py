"""The paper's diagram of one sentence: what the soft head looks at, and where the hard head stands.

Source tokens run to the right, target tokens down.  A circle's shade is the attention, a bold outline the position of the
head, whose way through the sentence is drawn as a line.
"""

from typing import Optional, Sequence

import numpy as np
from matplotlib.figure import Figure

EOS = "⟨/s⟩"
CELL = 0.34  # inches a token


def schedule_diagram(
    source: Sequence[str],
    target: Sequence[str],
    delays: Sequence[int],
    attention: Optional[Sequence[Sequence[float]]] = None,
    best: Optional[Sequence[int]] = None,
    title: str = "",
) -> Figure:
    """One row a target token.

    source, target: tokens, with EOS if the delays count it.  delays: g_i in 1..len(source), one for each target token.
    attention: beta_i, one row a target token, as long as its prefix or as the source.  best: the oracle's delays, drawn
    as small crosses.
    """
    if len(delays) != len(target):
        raise ValueError(f"a diagram needs one delay a target token, got {len(delays)} for {len(target)}")
    columns, rows = len(source), len(target)
    weights = _weights(attention, delays, columns)
    figure = Figure(figsize=(CELL * columns + 1.6, CELL * rows + 1.1), layout="constrained")
    axes = figure.add_subplot()
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    axes.scatter(x, y, s=90, c=1 - weights, cmap="gray", vmin=0, vmax=1, edgecolors="0.8", linewidths=0.5, zorder=2)
    head = np.asarray(delays) - 1
    axes.plot(head, np.arange(rows), color="tab:blue", linewidth=1.2, zorder=1)
    axes.scatter(head, np.arange(rows), s=110, facecolors="none", edgecolors="black", linewidths=1.8, zorder=3)
    if best is not None:
        axes.scatter(np.asarray(best) - 1, np.arange(rows), s=34, marker="x", color="tab:orange", zorder=4, label="best")
    axes.set_xticks(range(columns), [_literal(token) for token in source], rotation=60, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(rows), [_literal(token) for token in target])
    axes.xaxis.tick_top()
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    if title:
        axes.set_title(_literal(title), fontsize=10)
    return figure


def _weights(attention: Optional[Sequence[Sequence[float]]], delays: Sequence[int], columns: int) -> np.ndarray:
    """(rows, columns) in [0, 1]; without attention, light grey where something had been read."""
    weights = np.zeros((len(delays), columns))
    for i, delay in enumerate(delays):
        if attention is None:
            weights[i, :delay] = 0.15
        else:
            row = np.asarray(attention[i], dtype=float)[:columns]
            weights[i, : len(row)] = row
    return weights.clip(0, 1)


def _literal(text: str) -> str:
    """Shown as it is: matplotlib takes $...$ for mathematics."""
    return text.replace("$", r"\$")
