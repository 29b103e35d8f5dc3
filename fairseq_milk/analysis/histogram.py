"""The paper's histogram of initial delays: how many source tokens are read before the first target token is written."""

from typing import Any, Mapping

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from .arrays import Integers, as_lists
from .drawing import legend_label, literal, style, style_of

HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo")  # tell the systems apart in print
ROOM = 0.86  # of the distance between two delays, taken by their bars


def delay_histogram(delays: Mapping[str, Integers], title: str = "") -> Figure:
    """delays: system -> g_1 of each sentence.  Bars side by side, in per cent of the system's sentences."""
    delays = {name: as_lists(values) for name, values in delays.items()}
    for name, values in delays.items():
        if not len(values):
            raise ValueError(f"{name} has no sentence with a delay")
    if not delays:
        raise ValueError("there is nothing to draw")
    shares = {name: delay_shares(values) for name, values in delays.items()}
    with matplotlib.rc_context({**style(), "hatch.linewidth": 0.6}):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes: Any = figure.add_subplot()
        width = ROOM / len(shares)
        for index, (name, (colour, _)) in enumerate(style_of(shares).items()):
            left = np.arange(len(shares[name])) - ROOM / 2 + index * width
            axes.bar(left, shares[name], width, align="edge", color=colour, edgecolor="white", linewidth=0.4,
                     hatch=HATCHES[index % len(HATCHES)], label=legend_label(_label(name, delays[name])))  # fmt: skip
        axes.set_xlim(min(min(values) for values in delays.values()) - 1, max(map(len, shares.values())))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("initial delay (source tokens read before the first is written)")
        axes.set_ylabel("sentences (%)")
        if title:
            axes.set_title(literal(title), fontsize=11)
        axes.grid(axis="y", color="0.92")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    return figure


def delay_shares(delays: Integers) -> np.ndarray:
    """Per cent of the sentences with delay 0, 1, 2, ..."""
    return np.bincount(np.asarray(as_lists(delays), dtype=int)) * (100.0 / len(delays))


def _label(name: str, delays: Integers) -> str:
    return f"{name} (mean {np.mean(as_lists(delays)):.1f}, s.d. {np.std(as_lists(delays)):.1f})"
