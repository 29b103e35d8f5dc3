"""Pictures are drawn from arrays of any type with any tokens; data that do not fit are refused."""

import html
import io
import logging
import re
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

import numpy as np
import pytest
import torch
from fontTools.fontBuilder import FontBuilder  # type: ignore[import-untyped]
from fontTools.pens.ttGlyphPen import TTGlyphPen  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from fairseq_milk.analysis import drawing
from fairseq_milk.analysis.axis_cut import find_cut
from fairseq_milk.analysis.diagram import (
    CELL,
    EOS,
    LETTERS,
    Panel,
    attention_grid,
    schedule_diagram,
    schedule_diagrams,
    shown,
    staircase,
)
from fairseq_milk.analysis.drawing import FORMATS, legend_label, literal, render, save, visible
from fairseq_milk.analysis.histogram import delay_histogram, delay_shares
from fairseq_milk.analysis.looks import display_name, style_of
from fairseq_milk.analysis.plane import quality_latency_plane
from fairseq_milk.analysis.points import Point, pareto_front
from fairseq_milk.analysis.systems import paper_curves
from fairseq_milk.scoring.records import Record
from tests.support.strange_text import NASTY

SOURCE = ["weil", "john", "smith", "den", "hund", "kauft", "</s>"]
TARGET = ["because", "john", "smith", "buys", "the", "dog", "</s>"]
DELAYS = [1, 4, 4, 6, 6, 6, 7]
SCRIPTS = ["العربية", "中文字", "हिन्दी", "e\u0301\u0323", "🐕\u200d🦺", "עברית", "ไทย", "한국어", "ქართული"]
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


def svg(figure: Figure) -> bytes:
    return render(figure, "svg")


def svg_texts(figure: Figure) -> List[str]:
    """The texts of an SVG; asserts that it has no active elements."""
    root = ElementTree.fromstring(svg(figure))
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not names & {"script", "foreignObject", "image", "a", "iframe"}, names
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


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


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_diagram_of_any_kind_of_array(kind: Any) -> None:
    """Lists, arrays and tensors give the same picture."""
    square = [[1 / 7] * 7] * 7
    wrong = [token == "buys" for token in TARGET]
    lists = schedule_diagram(SOURCE, TARGET, DELAYS, square, DELAYS, wrong, "a")
    arrays = schedule_diagram(
        np.array(SOURCE), np.array(TARGET), kind(DELAYS), kind(square), kind(DELAYS), kind(wrong), "a"
    )
    rows = schedule_diagram(SOURCE, TARGET, list(kind(DELAYS)), [kind(row) for row in square], kind(DELAYS), wrong, "a")
    assert svg(arrays) == svg(rows) == svg(lists)


def test_diagram_of_weights_with_gradients() -> None:
    weights = torch.rand(7, 7, requires_grad=True)
    drawn = schedule_diagram(SOURCE, TARGET, torch.tensor(DELAYS), weights)
    assert svg(drawn) == svg(schedule_diagram(SOURCE, TARGET, DELAYS, weights.tolist()))


@pytest.mark.parametrize("delays", [[0, 1, 2], [1, 1, 1], [3, 3, 3]], ids=str)
def test_any_schedule(delays: List[int]) -> None:
    """Bold circles are at the last token read (left of the first if there is none); unread tokens are dots."""
    axes = schedule_diagram(["a", "b", "c"], ["x", "y", "z"], delays).axes[0]
    unread, read, last = (places(collection) for collection in axes.collections)
    assert last == [(delay - 1, i) for i, delay in enumerate(delays)]
    assert sorted(read) == sorted((j, i) for i, delay in enumerate(delays) for j in range(delay))
    assert sorted(unread) == sorted((j, i) for i, delay in enumerate(delays) for j in range(delay, 3))
    low, high = axes.get_xlim()
    assert all(low < x < high for x, _ in last)


def places(collection: Any) -> List[Any]:
    return [(int(x), int(y)) for x, y in collection.get_offsets().tolist()]


def test_one_token() -> None:
    figure = schedule_diagram(["a"], ["x"], [1], [[1.0]], best=[1])
    unread, read, last = (places(collection) for collection in figure.axes[0].collections)
    assert (unread, read, last) == ([], [(0, 0)], [(0, 0)])
    edge = next(line for line in figure.axes[0].lines if line.get_linestyle() == "--")
    assert set(np.asarray(edge.get_xdata()).tolist()) == {0.5}, "the limit is behind the token"
    assert {"a", "x", "how far one must read"} <= set(svg_texts(figure))


def test_strange_tokens_are_shown_as_they_are(tmp_path: Path) -> None:
    figure = schedule_diagram(STRANGE, STRANGE, range(1, len(STRANGE) + 1), title="$a_$ <i> 犬")
    _, svg = save(figure, tmp_path / "strange")
    text = svg.read_text(encoding="utf-8")
    assert ">$5<" in text and "&lt;b&gt;" in text and "犬" in text and "&amp;amp;" in text


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_script_in_every_format_without_a_warning(suffix: str) -> None:
    tokens = [*SCRIPTS, *NASTY]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        render(schedule_diagram(tokens, tokens, range(1, len(tokens) + 1), title=tokens[0]), suffix, dpi=60)


def test_a_viewer_without_the_fonts_takes_one_of_the_same_kind() -> None:
    root = ElementTree.fromstring(svg(schedule_diagram(SOURCE, TARGET, DELAYS)))
    fonts = [node.attrib["style"] for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert fonts and all(re.search(r"'DejaVu Sans'.*, sans-serif(;|$)", font) for font in fonts), fonts[0]


@pytest.fixture
def dejavu_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine without other fonts."""
    known = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *args, **kwargs: [])
    for cached in (drawing.installed_fonts, drawing.letters_of):
        cached.cache_clear()
    yield
    for cached in (drawing.installed_fonts, drawing.letters_of):
        cached.cache_clear()


@pytest.mark.usefixtures("dejavu_alone")
def test_letters_that_no_font_has_are_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = ["犬", "犬", "中文字", "한국어", "हिन्दी", "🐕\u200d🦺", "собака", "e\u0301"]
    figure = schedule_diagram(tokens, tokens, range(1, 9), title="$犬$")
    save(figure, tmp_path / "a", FORMATS)
    (record,) = caplog.records
    said = record.getMessage()
    assert record.levelname == "WARNING" and len(said.splitlines()) == 1
    assert "犬中文字" in said and "(CJK, Devanagari, Hangul, symbols)" in said and "fonts-noto-cjk" in said
    assert not set("собака$\u0301\u200d") & set(said.split(" (")[0])
    assert "a.png" in said and "a.pdf" in said and "a.svg" not in said


@pytest.mark.usefixtures("dejavu_alone")
def test_no_warning_for_letters_that_are_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    save(schedule_diagram(["犬"], ["x"], [1]), tmp_path / "viewer", ["svg"])
    save(schedule_diagram(["$5", "كلب", "собака", "עברית", *NASTY], ["⟨/s⟩"], [1]), tmp_path / "here", ["png"])
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.usefixtures("dejavu_alone")
def test_a_font_is_found_as_soon_as_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """matplotlib caches its list of fonts."""
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    new = [str(broken), dog_font(tmp_path / "dog.ttf")]
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *args, **kwargs: new)
    save(schedule_diagram(["犬"], ["x"], [1]), tmp_path / "dog", ["png", "pdf"])
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def dog_font(path: Path) -> str:
    """A font by the name of Noto's, with the one letter."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    pen.lineTo((500, 900))
    pen.lineTo((900, 0))
    pen.closePath()
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder([".notdef", "dog"])
    font.setupCharacterMap({ord("犬"): "dog"})
    font.setupGlyf({".notdef": pen.glyph(), "dog": pen.glyph()})
    font.setupHorizontalMetrics({".notdef": (1000, 0), "dog": (1000, 0)})
    font.setupHorizontalHeader(ascent=900, descent=-100)
    font.setupNameTable({"familyName": "Noto Sans CJK JP", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(path)
    return str(path)


@settings(max_examples=12)
@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=6))
def test_any_token_is_text_in_an_svg(tokens: List[str]) -> None:
    texts = svg_texts(schedule_diagram(tokens, ["x"], [1], title=tokens[0]))
    squeezed = {" ".join(text.split()) for text in texts}  # a reader of XML may fold spaces
    assert {" ".join(shown(token).split()) for token in tokens} <= squeezed | {""}


def test_nasty_names_are_text_everywhere() -> None:
    points = [Point(1 + n, 2 + n, name) for n, name in enumerate(NASTY)]
    plane = quality_latency_plane({name: [point] for name, point in zip(NASTY, points)}, title=NASTY[0])
    bars = delay_histogram({name: [1, 2, 2] for name in NASTY}, title=NASTY[0])
    for text in (svg_texts(plane), svg_texts(bars)):
        assert all(any(visible(name) in line for line in text) for name in NASTY)


@settings(max_examples=200)
@given(st.text())
def test_visible_text_can_be_written(text: str) -> None:
    """The result has the same length, is one line, and is valid in UTF-8 and XML; printable text is unchanged."""
    result = visible(text)
    assert len(result) == len(text) and len(result.splitlines()) <= 1
    ElementTree.fromstring(f"<a>{html.escape(result)}</a>")
    result.encode("utf-8")
    assert visible(result) == result
    if text.isprintable():
        assert result == text


def test_a_legend_hides_nothing() -> None:
    assert legend_label("_x").endswith("_x") and not legend_label("_x").startswith("_")


def test_long_tokens_are_cut() -> None:
    figure = schedule_diagram(["x" * 100_000], ["y"], [1])
    assert max(figure.get_size_inches()) < 10
    assert len(shown("x" * 100_000)) == LETTERS


def test_long_sentences_of_two_systems() -> None:
    tokens = [f"tok{i}" for i in range(60)]
    panels = [Panel(tokens, tokens, delays, attention(delays)) for delays in (range(1, 61), [60] * 60)]
    picture = render(schedule_diagrams(panels), "png", dpi=40)
    assert Image.open(io.BytesIO(picture)).size[0] < 40 * 40


def test_a_record_as_a_panel() -> None:
    record = Record(3, ["a", "b"], ["x"], [1, 3], attention=[[1.0], [0.2, 0.3, 0.5]])
    assert Panel.from_record(record, "MILk") == Panel(
        ["a", "b", EOS], ["x", EOS], [1, 3], record.attention, title="MILk"
    )
    cut = Record(3, ["a", "b"], ["x"], [1])
    assert Panel.from_record(cut).target == ["x"]


@pytest.mark.parametrize("longest", ["x", "Menschengruppen", "Bedingungen (conditions)"])
def test_a_diagram_has_the_size_of_what_is_in_it(longest: str) -> None:
    """Cells are squares of one size, whatever the labels; nothing overlaps, is cut, or leaves empty rows."""
    panels = [Panel(["a", longest, longest], ["a"] * rows, [1] * rows, title="milk") for rows in (4, 9)]
    figure = schedule_diagrams(panels, title="one")
    figure.draw_without_rendering()
    left, right = (axes.get_tightbbox() for axes in figure.axes)
    assert left is not None and right is not None
    assert 0 <= left.x0 < left.x1 < right.x0 < right.x1 <= figure.bbox.width
    assert 0 < right.y0 - figure.legends[0].get_window_extent().y1 < 0.2 * figure.dpi
    for axes in figure.axes:
        cell = np.diff(axes.transData.transform([(0, 1), (1, 0)]), axis=0)[0]
        assert cell == pytest.approx(CELL * figure.dpi)


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
        ({"source": ["x"] * 301}, "more than 300 tokens"),
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
    systems = {
        "wait-$k$": [Point(5, 90, "k=5"), Point(3, 80, "k=3", (2.9, 3.2), (78, 81))],
        "MILk": [Point(3.2, 99.5, "λ=0.1")],
    }
    figure = quality_latency_plane(systems, Point(2.9, 100, "best possible"), title="100 $ <b>")
    png, svg = save(figure, tmp_path / "plane")
    assert inked(png) > 0.01
    text = svg.read_text(encoding="utf-8")
    assert all(word in text for word in ("k=5", "best possible", "DAL (tokens)", "wait-$k$", "λ=0.1"))


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_plane_of_any_kind_of_array(kind: Any) -> None:
    made, rows = [Point(5, 90), Point(3, 80.5)], [[5.0, 90.0], [3.0, 80.5]]
    points = quality_latency_plane({"a": made}, overlay={"b": made})
    arrays = quality_latency_plane({"a": kind(rows)}, overlay={"b": [kind(row) for row in rows]})
    assert svg(arrays) == svg(points)


def test_plane_of_rows_with_labels_and_ranges() -> None:
    points = [Point(3, 80, "k=3", (2.9, 3.2)), Point(5, 90, "k=5")]
    rows = [(3, 80, "k=3", np.array([2.9, 3.2])), [5, 90, "k=5"]]
    assert svg(quality_latency_plane({"a": rows})) == svg(quality_latency_plane({"a": points}))


@pytest.mark.parametrize(
    "rows", [[3.0, 80.0], np.zeros((2, 3)), np.zeros((2, 6)), [[3.0]], [[3.0, np.nan]], [["3", "80"]]], ids=str
)
def test_invalid_points_are_named(rows: Any) -> None:
    with pytest.raises(
        ValueError, match="^a: a point is two finite numbers, latency and quality, and maybe a label, g"
    ):
        quality_latency_plane({"a": rows})


def test_plane_joins_points_from_left_to_right() -> None:
    figure = quality_latency_plane({"a": [Point(5, 90), Point(3, 80), Point(4, 70)]})
    assert np.asarray(figure.axes[0].lines[0].get_xdata()).tolist() == [3, 4, 5]


def test_labels_do_not_hide_each_other() -> None:
    """Four points almost at one place: their labels go to different sides."""
    figure = quality_latency_plane({"a": [Point(3 + i / 1000, 90, f"p{i}") for i in range(4)], "b": [Point(9, 10)]})
    labels: List[Any] = list(figure.axes[0].texts)
    places = {label.xyann for label in labels if label.get_text()}
    assert len(places) == 4


ELEVEN = ["milk", "wait-k", "monotonic", "mocha", "soft", "offline", "noise", "unpreserved", "a", "b", "c"]


def crowd() -> Dict[str, List[Point]]:
    """Eleven systems close to each other, with bars and a long label near the left edge, over the paper's range."""
    rng = np.random.default_rng(1)
    systems: Dict[str, List[Point]] = {}
    for name in ELEVEN:
        for n in range(1 + len(name) % 4):
            x, y = rng.uniform(2, 16), rng.uniform(24, 42)
            systems.setdefault(name, []).append(Point(x, y, f"λ=0.{n}", (x - 0.2, x + 0.2), (y - 1.5, y + 1.5)))
    systems["wait-k"] += [Point(1.5, 23, "k=2,max-update=300", (1.4, 1.6), (22, 24)), Point(28, 30, "noise=6,n=100")]
    return systems


def laid_out(figure: Figure, dpi: float) -> Any:
    """The axes as they are when the picture is saved with `dpi` dots per inch."""
    figure.set_dpi(dpi)
    figure.draw_without_rendering()
    return figure.axes[0]


def boxes_of_labels(axes: Any) -> Dict[str, Bbox]:
    return {f"{n} {text.get_text()}": Text.get_window_extent(text) for n, text in enumerate(axes.texts)}


@pytest.mark.parametrize("dpi", [72, 150])  # of an SVG or PDF, and of a PNG
@pytest.mark.parametrize("size", [(5.8, 4.2), (4.6, 3.5)], ids=str)
def test_a_crowded_plane_can_be_read(size: Any, dpi: float) -> None:
    """Every label is inside the axes and overlaps no other; the legend is inside the page and overlaps no data."""
    systems, paper = crowd(), paper_curves("deen", "dal")
    figure = quality_latency_plane(systems, Point(3, 44, "limit"), overlay=paper, size=size)
    axes = laid_out(figure, dpi)
    labels = boxes_of_labels(axes)
    assert len(labels) == sum(map(len, systems.values()))
    for name, box in labels.items():
        assert inside(box, axes.get_window_extent()), name
        assert not [other for other in labels if other != name and box.overlaps(labels[other])], name
    (legend,) = figure.legends
    page, covered = Bbox.from_bounds(0, 0, *figure.get_size_inches() * dpi), legend.get_window_extent()
    assert inside(covered, page)
    assert len(legend.get_texts()) == len(systems) + len(paper) + 2  # the limit and the Pareto front
    for points in (*systems.values(), *paper.values()):
        assert not covered.count_contains(axes.transData.transform([point[:2] for point in points]))
    assert not covered.overlaps(axes.get_window_extent())
    assert axes.get_window_extent().height > 0.7 * size[1] * dpi  # the legend takes nothing from the curves


def inside(box: Bbox, outer: Bbox) -> bool:
    return outer.x0 <= box.x0 and box.x1 <= outer.x1 and outer.y0 <= box.y0 and box.y1 <= outer.y1


def distance(box: Bbox, place: Any) -> float:
    x, y = place
    return float(np.hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1)))


CLOSE = {
    "two at one DAL": {
        "milk": [Point(5, 30, "λ=0.1"), Point(9, 33, "λ=0")],
        "wait-k": [Point(5, 30.15, "k=5"), Point(9, 28)],
    },
    "twins": {"milk": [Point(5, 30, "λ=0.1"), Point(5, 30.1, "λ=0.2")], "b": [Point(2, 20), Point(9, 40)]},
    "a row": {"a": [Point(3 + n / 8, 30, f"k={n}") for n in range(6)], "b": [Point(x, 20 + 2 * x) for x in (1, 6, 9)]},
    "crowd": crowd(),
}


@pytest.mark.parametrize("name", CLOSE)
def test_a_label_belongs_to_the_nearest_point_or_has_a_line_to_its_own(name: str) -> None:
    systems = CLOSE[name]
    axes = laid_out(quality_latency_plane(systems), 100)
    own = {p.label: axes.transData.transform(p[:2]) for points in systems.values() for p in points if p.label}
    every = [axes.transData.transform(p[:2]) for points in systems.values() for p in points]
    labelled = [p for points in systems.values() for p in points if p.label]
    assert len(axes.texts) == len(labelled)
    for text in axes.texts:
        box, point = Text.get_window_extent(text), axes.transData.transform(text.xy)
        if name != "crowd":
            assert point == pytest.approx(own[text.get_text()])
        nearest = min(distance(box, other) for other in every if not np.allclose(other, point))
        assert text.arrow_patch is not None or distance(box, point) < nearest, text.get_text()
    assert name == "two at one DAL" or any(text.arrow_patch for text in axes.texts)


def test_a_label_keeps_off_the_bars() -> None:
    """The first corner of the low point is on the bar of its neighbour."""
    systems = {"a": [Point(5, 10, "k=5")], "b": [Point(5.3, 9, "", None, (2, 12)), Point(0, 0), Point(10, 20)]}
    axes = laid_out(quality_latency_plane(systems), 100)
    (label,) = boxes_of_labels(axes).values()
    (x, low), (_, high) = axes.transData.transform([(5.3, 2), (5.3, 12)])
    assert not label.overlaps(Bbox.from_extents(x - 1, low, x + 1, high))


def test_a_label_keeps_off_the_line_of_the_limit() -> None:
    """There is room on the left of the point; the first corner is on the right, across the line."""
    systems = {"a": [Point(4.9, 20, "λ=0.3"), Point(1, 10), Point(9, 21)]}
    axes = laid_out(quality_latency_plane(systems, best=Point(5, 40)), 100)
    (label,) = boxes_of_labels(axes).values()
    limit, _ = axes.transData.transform((5, 20))
    assert not label.x0 <= limit <= label.x1


def test_a_label_at_the_edge_stays_on_the_axes() -> None:
    systems = {"a": [Point(0, 0, "wait-k=2,max-update=300"), Point(9, 9, "wait-k=4,max-update=600"), Point(9, 0, "x")]}
    axes = laid_out(quality_latency_plane(systems, size=(3.2, 2.6)), 100)
    labels = boxes_of_labels(axes)
    assert len(labels) == 3 and all(inside(box, axes.get_window_extent()) for box in labels.values())


def test_a_label_wider_than_the_axes_is_dropped() -> None:
    systems = {"a": [Point(2, 20, "x" * 200), Point(3, 30, "k=3")]}
    axes = quality_latency_plane(systems).axes[0]
    assert [text.get_text() for text in axes.texts] == ["k=3"]


def test_empty_plane() -> None:
    figure = quality_latency_plane({}, title="nothing")
    assert not figure.legends and not figure.axes[0].lines and not figure.axes[0].texts
    assert {"nothing", "BLEU", "DAL (tokens)"} <= set(svg_texts(figure))


def test_bars_are_as_long_as_the_ranges() -> None:
    figure = quality_latency_plane({"a": [Point(3, 80, "", (2.9, 3.2), (78, 81)), Point(5, 90)]})
    collections: List[Any] = list(figure.axes[0].collections)
    bars = [collection.get_segments() for collection in collections]
    assert [segment.tolist() for segment in (bars[0][0], bars[1][0])] == [[[2.9, 80], [3.2, 80]], [[3, 78], [3, 81]]]


def test_overlay_is_dashed_in_the_colour_of_its_system() -> None:
    systems = {"soft": [Point(9, 30)], "milk": [Point(3, 25), Point(5, 27)]}
    figure = quality_latency_plane(systems, overlay={"MILk (paper)": [Point(4, 26), Point(6, 28)]})
    lines: List[Any] = list(figure.axes[0].lines)
    own, paper = (next(line for line in lines if list(line.get_xdata()) == x) for x in ([3, 5], [4, 6]))
    assert own.get_color() == paper.get_color() and own.get_linestyle() == "-" and paper.get_linestyle() == "--"
    assert "MILk (paper)" in svg_texts(figure) and "Pareto front" in svg_texts(figure)


def test_spellings_of_a_name_share_a_colour() -> None:
    styles = style_of(["offline", "wait-k", "MILk", "waitk (paper)", "milk"])
    assert styles["wait-k"] == styles["waitk (paper)"] != styles["MILk"] == styles["milk"]
    assert styles["MILk"] == style_of(["soft", "milk λ=0.2"])["milk λ=0.2"]
    assert len(set(style_of(["milk λ=0.1", "milk λ=0.2", "wait-k", "offline"]).values())) == 4
    shipped = ["milk", "wait-k", "monotonic", "mocha", "soft", "offline", "noise", "unpreserved", "a", "b", "c"]
    looks = list(style_of(shipped).values())
    assert len(set(looks)) == len({marker for _, marker in looks}) == len(shipped)
    assert len(style_of(map(str, range(100)))) == 100


def test_of_two_tables_the_first_has_the_colours_of_the_mechanisms() -> None:
    styles = style_of(["old/milk", "old/wait-k", "new/milk", "new/wait-k"])
    assert [styles[name] for name in ("old/milk", "old/wait-k")] == [
        style_of([name])[name] for name in ("milk", "waitk")
    ]
    assert len(set(styles.values())) == 4


def test_the_colour_of_a_mechanism_belongs_to_it_alone() -> None:
    """Also in pictures without that mechanism, so that pictures can be compared."""
    mechanisms = {colour for colour, _ in style_of(["milk", "wait-k", "monotonic", "mocha", "soft"]).values()}
    others = style_of(map(str, range(100)))
    assert len(mechanisms) == 5 and not mechanisms & {colour for colour, _ in others.values()}
    first = [others[str(n)] for n in range(40)]
    assert len(set(first)) == 40 and len({marker for _, marker in first[:8]}) == 8


@given(st.lists(st.builds(Point, st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_pareto_front(points: List[Point]) -> None:
    """The front rises from left to right; each other point is dominated by one of its points, and none of these is."""
    front = pareto_front(points)
    places = sorted({point[:2] for point in front})
    assert [quality for _, quality in places] == sorted({quality for _, quality in places})
    assert len({latency for latency, _ in places}) == len(places)
    for point in points:
        at_least_as_good = [p for p in front if p.latency <= point.latency and p.quality >= point.quality]
        assert at_least_as_good and (point in front) == (point[:2] in {p[:2] for p in at_least_as_good})


def test_histogram_counts_sentences() -> None:
    assert delay_shares([1, 1, 1, 3]).tolist() == [0, 75, 0, 25]
    figure = delay_histogram({"MILk": [1, 1, 1, 3], "wait-2": [2, 2]})
    bars = [bars for axes in figure.axes for bars in axes.containers]
    assert [[bar.get_height() for bar in of_system] for of_system in bars] == [[0, 75, 0, 25], [0, 0, 100]]
    for of_system in bars:
        assert [bar.get_x() + bar.get_width() / 2 for bar in of_system] == pytest.approx(range(len(of_system)))
    assert [axes.get_xticks().tolist() for axes in figure.axes] == [[1, 2, 3]] * 2, "every bar has its tick"
    assert any("MILk (mean 1.5" in text for text in svg_texts(figure))


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_histogram_of_any_kind_of_array(kind: Any) -> None:
    assert delay_shares(kind([1, 1, 1, 3])).tolist() == [0, 75, 0, 25]
    figure = delay_histogram({"MILk": kind([1, 1, 1, 3]), "wait-2": list(kind([2, 2]))})
    assert any("MILk (mean 1.5, s.d. 0.9)" in text for text in svg_texts(figure))
    with pytest.raises(ValueError, match="a has no sentence"):
        delay_histogram({"a": kind([])})


@pytest.mark.parametrize("delays, message", [({}, "nothing to draw"), ({"a": []}, "a has no sentence with a delay")])
def test_histogram_of_nothing_is_refused(delays: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        delay_histogram(delays)


# ---- the axis is cut at wide gaps -----------------------------------------------------------------------------------


def test_an_axis_is_cut_at_a_wide_gap() -> None:
    systems = {
        "milk": [Point(x, 30 + x / 4, f"λ={x}") for x in (2, 3, 4, 5, 6, 7)],
        "soft": [Point(15.3, 33, "offline")],
    }
    axes = laid_out(quality_latency_plane(systems), 100)
    width = axes.get_window_extent().width
    (left, _), (right, _), (offline, _) = axes.transData.transform([(2, 31), (7, 31), (15.3, 33)])
    assert (right - left) / width > 0.65, "without a cut they would have a third of the axis"
    assert right < offline < axes.get_window_extent().x1
    ticks = axes.get_xticks()
    assert not [t for t in ticks if 7.5 < t < 14.5] and [t for t in ticks if t > 14.5] and 2 <= min(ticks) <= 4
    strokes = [line for line in axes.lines if line.get_clip_on() is False and line.get_linestyle() == "None"]
    assert len(strokes) == 2, "the cut is shown"
    assert {text.get_text() for text in axes.texts} == {"λ=2", "λ=3", "λ=4", "λ=5", "λ=6", "λ=7", "offline"}


@pytest.mark.parametrize(
    "values", [[1, 2, 3, 4, 5, 6, 7], [1, 9], [3, 3.1, 9], [1, 2, 6, 10, 14, 18, 22], [2, 3, 4, 5, 6, 15, 16, 25], []]
)
def test_an_axis_without_a_wide_gap_is_not_cut(values: List[float]) -> None:
    assert find_cut(values) is None


@given(st.floats(-5, 40, allow_nan=False))
def test_the_place_of_a_value_on_a_cut_axis_is_that_value(x: float) -> None:
    cut = find_cut([2, 3, 4, 5, 6, 7, 15])
    assert cut is not None
    assert float(cut.inverse(cut.forward(x))) == pytest.approx(x, abs=1e-9)
    assert float(cut.forward(x + 0.1)) > float(cut.forward(x))


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, shown",
    [
        ("milk", "MILk"), ("milk λ=0.1", "MILk λ=0.1"), ("old/milk", "old/MILk"), ("milk-val", "MILk-val"),
        ("mocha w=2", "MoChA w=2"), ("waitk", "wait-k"), ("wait-k k=3", "wait-k k=3"), ("milkshake", "milkshake"),
        ("soft", "soft"), ("MILk (paper)", "MILk (paper)"),
    ],
)  # fmt: skip
def test_mechanisms_are_called_as_in_the_paper(name: str, shown: str) -> None:
    assert display_name(name) == shown


def test_wait_4_has_the_colour_of_wait_k() -> None:
    assert style_of(["wait-4"])["wait-4"] == style_of(["wait-k"])["wait-k"] == style_of(["x/wait-12"])["x/wait-12"]


def test_the_legend_explains_red_words_and_names_no_head() -> None:
    wrong = [token == "buys" for token in TARGET]
    texts = svg_texts(schedule_diagram(SOURCE, TARGET, DELAYS, wrong=wrong, title="wait-3"))
    assert "a wrong word" in texts and "how far it has read" in texts and not [t for t in texts if "head" in t]
    assert "a wrong word" not in svg_texts(schedule_diagram(SOURCE, TARGET, DELAYS, wrong=[False] * 7))
