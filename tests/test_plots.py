"""The pictures can be drawn from arrays, whatever the tokens are, and say what does not fit."""

from pathlib import Path
from typing import Any, List, Sequence

import numpy as np
import pytest
from PIL import Image

from fairseq_milk.analysis.diagram import Panel, attention_grid, schedule_diagram, schedule_diagrams, staircase
from fairseq_milk.analysis.drawing import literal, save
from fairseq_milk.analysis.plane import Point, quality_latency_plane

SOURCE = ["weil", "john", "smith", "den", "hund", "kauft", "</s>"]
TARGET = ["because", "john", "smith", "buys", "the", "dog", "</s>"]
DELAYS = [1, 4, 4, 6, 6, 6, 7]
STRANGE = ["$5", "$x_i$", "<b>", "&amp;", "100%", r"\frac", "ぽち", "犬", "собака", "كلب", "🐕", "@@", "▁", "", "a b"]


def attention(delays: Sequence[int]) -> List[List[float]]:
    return [[1 / delay] * delay for delay in delays]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("L"))


def inked(path: Path) -> float:
    """The share of the picture that is not white."""
    return float((pixels(path) < 250).mean())


def test_diagram_is_drawn_as_png_and_svg(tmp_path: Path) -> None:
    figure = schedule_diagram(SOURCE, TARGET, DELAYS, attention(DELAYS), best=DELAYS, title="MILk")
    png, svg = save(figure, tmp_path / "diagram")
    assert inked(png) > 0.02
    text = svg.read_text(encoding="utf-8")
    assert all(f">{token}<" in text for token in ("weil", "because", "MILk", "how far one must read"))


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    def draw(name: str) -> List[bytes]:
        figure = schedule_diagram(SOURCE, TARGET, DELAYS, attention(DELAYS))
        return [path.read_bytes() for path in save(figure, tmp_path / name)]

    assert draw("a") == draw("b")


def test_attention_darkens_the_circles(tmp_path: Path) -> None:
    """The same schedule with and without attention differs in nothing but the shades."""
    full = [[0.0] * (delay - 1) + [1.0] for delay in DELAYS]
    dark, light = (
        pixels(save(schedule_diagram(SOURCE, TARGET, DELAYS, weights), tmp_path / name, ["png"])[0])
        for name, weights in (("dark", full), ("light", [[0.0] * len(SOURCE)] * len(TARGET)))
    )
    assert (dark < 80).sum() > (light < 80).sum() * 1.2


def test_panels_beside_each_other_and_mistakes_in_red(tmp_path: Path) -> None:
    wrong = [token == "buys" for token in TARGET]
    panels = [Panel(SOURCE, TARGET, DELAYS, title="MILk"), Panel(SOURCE, TARGET, [7] * 7, wrong=wrong, title="wait")]
    figure = schedule_diagrams(panels)
    colours = [label.get_color() for label in figure.axes[1].get_yticklabels()]
    assert [colour == "#C00000" for colour in colours] == wrong
    assert inked(save(figure, tmp_path / "two", ["png"])[0]) > 0.02


@pytest.mark.parametrize("delays", [[0, 1, 2], [1, 1, 1], [3, 3, 3]], ids=str)
def test_any_schedule(delays: List[int], tmp_path: Path) -> None:
    save(schedule_diagram(["a", "b", "c"], ["x", "y", "z"], delays), tmp_path / "any", ["png"])


def test_one_token(tmp_path: Path) -> None:
    save(schedule_diagram(["a"], ["x"], [1], [[1.0]], best=[1]), tmp_path / "one")


def test_strange_tokens_are_shown_as_they_are(tmp_path: Path) -> None:
    figure = schedule_diagram(STRANGE, STRANGE, range(1, len(STRANGE) + 1), title="$a_$ <i> 犬")
    _, svg = save(figure, tmp_path / "strange")
    text = svg.read_text(encoding="utf-8")
    assert ">$5<" in text and "&lt;b&gt;" in text and "犬" in text and "&amp;amp;" in text


def test_long_sentences_keep_to_a_page(tmp_path: Path) -> None:
    tokens = [f"token{i}" for i in range(200)]
    figure = schedule_diagram(tokens, tokens, range(1, 201))
    assert max(figure.get_size_inches()) < 40
    assert inked(save(figure, tmp_path / "long", ["png"], dpi=50)[0]) > 0.01


@pytest.mark.parametrize(
    "change, message",
    [
        ({"delays": [1, 2]}, "7 target tokens, got 2 delays"),
        ({"best": [1]}, "got 1 best"),
        ({"attention": [[1.0]]}, "got 1 attention"),
        ({"wrong": [True]}, "got 1 wrong"),
        ({"delays": [1, 2, 3, 4, 5, 6, 8]}, "do not fit a source of 7 tokens"),
        ({"delays": [-1, 2, 3, 4, 5, 6, 7]}, "do not fit a source of 7 tokens"),
        ({"target": [], "delays": []}, "without target tokens"),
    ],
)
def test_what_does_not_fit_is_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule_diagram(**{"source": SOURCE, "target": TARGET, "delays": DELAYS, **change})


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        schedule_diagrams([])


def test_the_head_reads_to_the_right_and_writes_downwards() -> None:
    x, y = staircase(np.array([0, 2, 2]))
    assert list(zip(x.tolist(), y.tolist())) == [(0, 0), (0, 1), (2, 1), (2, 2), (2, 2)]


def test_attention_is_cut_and_filled_to_the_grid() -> None:
    grid = attention_grid([[0.5, 0.5], [1.0, 0.0, 0.0, 2.0], [float("nan")]], rows=3, columns=3)
    assert grid.tolist() == [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_literal_dollars() -> None:
    assert literal("$a$") == r"\$a\$"


def test_plane(tmp_path: Path) -> None:
    systems = {"wait-$k$": [Point(5, 90, "k=5"), Point(3, 80, "k=3", 0.1, 2.0)], "MILk": [Point(3.2, 99.5, "λ=0.1")]}
    figure = quality_latency_plane(systems, Point(2.9, 100, "best possible"), title="100 $ <b>")
    png, svg = save(figure, tmp_path / "plane")
    assert inked(png) > 0.01
    text = svg.read_text(encoding="utf-8")
    assert all(word in text for word in ("k=5", "best possible", "DAL (tokens)", "wait-$k$", "λ=0.1"))


def test_plane_joins_points_from_left_to_right() -> None:
    figure = quality_latency_plane({"a": [Point(5, 90), Point(3, 80), Point(4, 70)]})
    assert np.asarray(figure.axes[0].lines[0].get_xdata()).tolist() == [3, 4, 5]


def test_labels_do_not_hide_each_other() -> None:
    """Four points almost at one place: their labels go to different sides."""
    figure = quality_latency_plane({"a": [Point(3 + i / 1000, 90, f"p{i}") for i in range(4)], "b": [Point(9, 10)]})
    labels: List[Any] = list(figure.axes[0].texts)
    places = {label.xyann for label in labels if label.get_text()}
    assert len(places) == 4


def test_empty_plane(tmp_path: Path) -> None:
    save(quality_latency_plane({}), tmp_path / "empty")
