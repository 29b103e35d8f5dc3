"""The paper's histogram of initial delays: source tokens read before the first target token is written."""

import math
from typing import Any, Mapping

import numpy as np
from matplotlib.figure import Figure

from .arrays import Integers, as_lists
from .drawing import house_style, literal
from .looks import display_name, style_of

WIDTH = 0.8  # of a bar, in tokens
TICKS = 24  # at most


def delay_histogram(delays: Mapping[str, Integers], title: str = "") -> Figure:
    """One row per system, in per cent of its sentences.  delays: g_1 of each sentence, by system."""
    delays = {name: as_lists(values) for name, values in delays.items()}
    if not delays:
        raise ValueError("there is nothing to draw")
    for name, values in delays.items():
        if not values:
            raise ValueError(f"{name} has no sentence with a delay")
    shares = {name: delay_shares(values) for name, values in delays.items()}
    with house_style():
        figure = Figure(figsize=(6.4, 0.9 + 1.5 * len(shares)), layout="constrained")
        rows: Any = figure.subplots(len(shares), 1, squeeze=False, sharex=True, sharey=True)
        for axes, (name, (colour, _)) in zip(rows[:, 0], style_of(shares).items()):
            axes.bar(range(len(shares[name])), shares[name], WIDTH, color=colour)
            label = f"{display_name(name)} (mean {np.mean(delays[name]):.1f}, s.d. {np.std(delays[name]):.1f})"
            axes.set_title(literal(label), fontsize=9, loc="left", color=colour)
            axes.grid(axis="y", color="0.92")
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        _label_axes(figure, rows[:, 0], shares)
        if title:
            figure.suptitle(literal(title), fontsize=11)
    return figure


def _label_axes(figure: Figure, rows: Any, shares: Mapping[str, np.ndarray]) -> None:
    """Label the axes, with a tick under every bar if there is room."""
    first = min(int(np.flatnonzero(values)[0]) for values in shares.values())
    last = max(map(len, shares.values())) - 1
    step = max(1, math.ceil((last - first + 1) / TICKS))
    rows[-1].set_xlim(first - 0.7, last + 0.7)
    rows[-1].set_xticks(range(first, last + 1, step))
    rows[-1].set_xlabel("initial delay (source tokens read before the first target token is written)")
    figure.supylabel("sentences (%)", fontsize=10)


def delay_shares(delays: Integers) -> np.ndarray:
    """Per cent of sentences with delay 0, 1, 2, ..."""
    return np.bincount(np.asarray(as_lists(delays), dtype=int)) * (100.0 / len(delays))
