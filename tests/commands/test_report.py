"""`fairseq-milk report`: one HTML file that holds everything, shows text as text, and fits large and small screens."""

import base64
import html
import json
import math
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from PIL import Image

from fairseq_milk import cli
from fairseq_milk.analysis import report
from fairseq_milk.analysis.drawing import visible
from fairseq_milk.analysis.page import environment
from fairseq_milk.analysis.report import POLICY, Choice, build_report
from fairseq_milk.analysis.sentences import Generation, read_generation
from fairseq_milk.analysis.systems import group
from fairseq_milk.scoring.score import score_records
from fairseq_milk.scoring.table import write_results
from tests.support import stand_in_sweep as stand_in
from tests.support.strange_text import NASTY

ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "section", "article", "h1", "h2", "h3", "p",
    "div", "figure", "img", "table", "thead", "tbody", "tr", "th", "td", "strong", "span", "small", "code", "dl", "dt",
    "dd", "bdi", "details", "summary",
}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "src", "alt", "dir", "style"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class Page(HTMLParser):
    """A parsed page: elements, attributes, images and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: List[str] = []
        self.attributes: List[Tuple[str, Optional[str]]] = []
        self.texts: List[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def images(self) -> List[ElementTree.Element]:
        """The SVG images; the others are PNG, in which nothing can act."""
        sources = [value or "" for name, value in self.attributes if name == "src"]
        kinds = [re.match("data:image/(svg[+]xml|png);base64,", source) for source in sources]
        assert all(kinds)
        svgs = [source.partition(",")[2] for source, kind in zip(sources, kinds) if kind and kind[1] == "svg+xml"]
        return [ElementTree.fromstring(base64.b64decode(svg)) for svg in svgs]


def generation(label: str, made: List[Any]) -> Generation:
    return read_generation(label, score_records(made))


def small_report(tokens: List[str], names: List[str]) -> str:
    """A report with every kind of text from outside: tokens, names, settings, paths, signatures, title, command."""
    systems = group(
        [
            stand_in.result(name, name, dal=3.0 + n, log=name, bleu_signature=name, warm_start=name, commit=name)
            for n, name in enumerate(names)
        ]
    )
    generations = [generation(name, stand_in.records(2, size=1, words=tokens)) for name in names[:1]]
    return build_report(systems, generations, Choice(names[0], [0], 0, None, names[0]))


def assert_harmless(page: Page) -> None:
    assert set(page.elements) <= ELEMENTS
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    for image in page.images():
        assert not {"script", "foreignObject", "image", "a"} & {node.tag.rpartition("}")[2] for node in image.iter()}
        links = [value for node in image.iter() for name, value in node.attrib.items() if name.endswith("href")]
        assert all(link.startswith("#") for link in links)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    table, out = stand_in.sweep(folder, seeds=(1, 2)), folder / "report.html"
    assert cli.main(["report", str(table), "--out", str(out), "--sentence", "3", "5", "--paper", "deen"]) == 0
    return out


@pytest.fixture(scope="module")
def page(made: Path) -> Page:
    return Page(made.read_text(encoding="utf-8"))


def test_everything_is_there(page: Page) -> None:
    for heading in ("Results", "Quality against latency", "Initial delays", "Chosen sentences", "How this was made",
                    "Lowest sentence BLEU of MILk", "Largest lag of MILk", "The paper's figures"):  # fmt: skip
        assert heading in page.text, heading
    for text in ("λ=0.05", "k=8", "soft", "Sentence 3", "Sentence 5", "28.4", "unit:subword|eos:yes", "tok:13a",
                 "30 min", "0123456789abcdef", "start-s1", "fairseq-milk"):  # fmt: skip
        assert text in page.text, text
    pictures = [value.split(",")[0] for name, value in page.attributes if name == "alt" and value]
    assert pictures[:4] == ["BLEU against DAL", "BLEU against AL", "BLEU against AP", "Histogram of initial delays"]
    assert 4 <= page.elements.count("article") <= 6
    schedules = [picture for picture in pictures if re.match(r"Schedule of (MILk|wait-k|soft).* in sentence", picture)]
    assert len(schedules) == 2 * page.elements.count("article") == len(pictures) - 4


def test_it_is_one_file_without_network(made: Path, page: Page) -> None:
    assert ("content", POLICY) in page.attributes and "default-src 'none'" in POLICY
    assert_harmless(page)
    outside = re.sub(r'src="data:[^"]*"', "", made.read_text(encoding="utf-8"))
    assert "http" not in outside.replace("http-equiv", "") and "url(" not in outside and "@import" not in outside


def test_nasty_text_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the pictures, which are all SVG here."""
    monkeypatch.setattr(report, "HEAVIEST", 10**9)
    monkeypatch.setattr(report, "MOST_TOKENS", len(NASTY) + 1)
    names = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "$x$ \\textbf{y} ../../z"]
    page = Page(small_report(NASTY, names))
    assert_harmless(page)
    for token in NASTY:
        assert " ".join(visible(token).split()) in page.text, token
    nodes = [node for image in page.images() for node in image.iter() if node.tag.endswith("}text")]
    labels = ["".join(node.itertext()) for node in nodes]
    assert {"<script>alert(1)</scrip…", "$x$", r"\textbf{x}", "../../x"} <= set(labels)


@settings(max_examples=200)
@given(st.text(), st.text())
def test_any_text_survives_as_text(text: str, value: str) -> None:
    page = Page(environment().from_string('<p class="{{ value }}">{{ text }}</p>').render(text=text, value=value))
    assert page.elements == ["p"] and page.attributes == [("class", visible(value))]
    assert "".join(page.texts) == visible(text)


def test_markup_is_not_escaped_twice() -> None:
    template = "{% macro b(x) %}<b>{{ x }}</b>{% endmacro %}<p>{{ b('<') }}{{ y }}</p>"
    assert environment().from_string(template).render(y="&") == "<p><b>&lt;</b>&amp;</p>"


def test_a_value_that_the_template_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_the_commands_of_every_run_are_there(page: Page) -> None:
    """Also of the run that others started from, which is not in the table."""
    assert page.elements.count("details") == page.elements.count("summary") == 9 * 2 + 1
    texts = " ".join(" ".join(page.texts).split())
    for text in ("MILk λ=0.05, seed 2 log ", "commands cd /work fairseq-train data", "--latency-weight 0.05 --option-0",
                 "--option-59 59 fairseq-generate data > '<log>'", "start-s1 commands cd /work"):  # fmt: skip
        assert text in texts, text


def test_missing_commands_are_reported(tmp_path: Path) -> None:
    log = str(tmp_path / "run" / "results" / "generate-test.jsonl")
    page = Page(build_report(group([stand_in.result(log=log)]), [], Choice()))
    assert page.elements.count("details") == 1 and f"{tmp_path / 'run' / 'commands.sh'} is not here" in page.text


@pytest.mark.parametrize(
    "commits, warnings",
    [
        (["0.1.0+a", "0.1.0+a", ""], []),
        (["0.1.0+a", "0.1.0+b"], ["same version of fairseq_milk: 0.1.0+a, 0.1.0+b."]),
        (["0.1.0+a, 0.1.0+b"], ["same version of fairseq_milk: 0.1.0+a, 0.1.0+b."]),
        (["0.1.0+a-dirty"], ["uncommitted changes: 0.1.0+a-dirty."]),
        (["0.1.0+a", "0.1.0+a-dirty"], ["same version of fairseq_milk", "uncommitted changes"]),
    ],
)
def test_other_and_changed_versions_are_warned_of(commits: List[str], warnings: List[str]) -> None:
    results = [stand_in.result(commit=commit, seed=seed) for seed, commit in enumerate(commits)]
    text = build_report(group(results), [], Choice())
    assert text.count('class="warning"') == len(warnings) and all(warning in text for warning in warnings)


@pytest.mark.parametrize("subset, others", [("test", "valid"), ("valid", "test")])
def test_another_subset_of_the_table(subset: str, others: str, tmp_path: Path) -> None:
    rows = [stand_in.result(name, "", log=f"{name}/results/generate-{name}.jsonl") for name in (others, subset)]
    table, out = write_results(rows, tmp_path)[0], tmp_path / "report.html"
    assert cli.main(["report", str(table), "--subset", subset, "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert f"1 system, 1 run, 12 sentences of {subset}." in text and f">{others}<" not in text


def test_rows_counted_in_different_ways_are_warned_of() -> None:
    results = [stand_in.result(latency_signature=signature, seed=n) for n, signature in enumerate(("a", "b"))]
    assert "cannot be compared" in build_report(group(results), [], Choice())
    assert "cannot be compared" not in build_report(group(results[:1]), [], Choice())


def test_rows_that_name_no_files_have_none_listed() -> None:
    text = build_report(group([stand_in.result(log="", checkpoint="")]), [], Choice())
    assert "is not here" not in text and "Files and commands" not in text


def test_without_logs_there_is_still_a_table() -> None:
    text = build_report(group([stand_in.result(bleu=float("nan"))]), [], Choice())
    assert "the logs that hold them are not here" in text and "–" in text


def test_the_worst_sentences() -> None:
    good, bad, slow = stand_in.records(2, accuracy=1.0, size=3)
    bad = bad._replace(hypothesis=["um"] * len(bad.hypothesis))
    slow = slow._replace(delays=[len(slow.source) + 1] * len(slow.delays))
    long = good._replace(id=7, source=["x"] * 400)
    of_system = generation("milk", [good, bad, slow, long])
    assert of_system.lowest_bleu(1) == [1] and of_system.largest_dal(1) == [2]


def test_a_looping_hypothesis_and_a_long_table_are_folded() -> None:
    """Forty systems of three seeds, and a hypothesis of 252 tokens in each generation: still below a megabyte."""
    results = [
        stand_in.result(f"system{n}", f"wait-k={n}", bleu=20 + n % 7, dal=2 + n / 4, seed=seed)
        for n in range(40)
        for seed in (1, 2, 3)
    ]
    made = stand_in.records(3, size=12)
    looping = made[4]._replace(hypothesis=["immer", "wieder"] * 126, delays=[3] * 253, attention=None)
    long = [word for n in range(3) for word in stand_in.WORDS]
    wide = [r._replace(id=20 + r.id) for r in stand_in.records(3, accuracy=0.2, size=3, words=long)]
    generations = [generation(label, [*made[:4], looping, *made[5:], *wide]) for label in ("milk", "wait-k", "soft")]
    text = build_report(group(results), generations, Choice(sentences=[4, 20, 21, 22]))
    page = Page(text)
    assert len(text) < 1_000_000
    assert "10 more rows" in page.text and "90 more rows" in page.text and page.elements.count("table") == 4
    assert page.text.count("immer wieder " * 125) == 3 and "all 1637 characters" in page.text, "the whole text, folded"
    assert "The schedule of MILk is too long to be drawn here: fairseq-milk plot schedule --sentence 4" in page.text
    assert not [value for name, value in page.attributes if name == "alt" and "in sentence 4" in str(value)]
    assert [value for name, value in page.attributes if name == "alt" and "in sentence 20" in str(value)]


def test_collapsed_systems_are_remarked_on() -> None:
    results = [stand_in.result(seed=seed, collapse="reads everything") for seed in (1, 2)]
    results += [
        stand_in.result("mocha", "chunk-size=2", collapse="writes at once"),
        stand_in.result("wait-k", "wait-k=3"),
    ]
    text = build_report(group(results), [], Choice())
    assert "The schedule of MILk λ=0.1 has collapsed (seed 1, 2): it reads everything." in text
    assert "The schedule of MoChA w=2 has collapsed (seed 1): it writes at once." in text
    assert text.count("has collapsed") == 2


def test_durations_as_in_the_sweep() -> None:
    known = build_report(group([stand_in.result(train_seconds=1830.0, generate_seconds=48.2)]), [], Choice())
    unknown = build_report(group([stand_in.result(train_seconds=math.nan, generate_seconds=math.nan)]), [], Choice())
    assert ">30 min 30 s<" in known and ">48 s<" in known and unknown.count(">–<") == 2


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--out", "x.png"], "--out must end in .html"),
        (["--out", "x.html", "--worst", "-1"], "--worst must not be negative"),
        (["--out", "x.html", "--sentence", "77"], "--sentence 77"),
    ],
)
def test_faults(arguments: List[str], message: str, made: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", str(made.with_name("results.csv")), *arguments]) == 2
    assert message in capsys.readouterr().err and not list(tmp_path.iterdir())


# ---- in a browser ---------------------------------------------------------------------------------------------------

WIDTHS = (360, 768, 1280)
FRAMES = """<!DOCTYPE html><body><script>
function measure(frame) {
  const page = frame.contentDocument, width = frame.clientWidth, images = [...page.images];
  const outside = [...page.querySelectorAll("body *")].filter(
    e => e.getBoundingClientRect().right > width + 1 && !e.closest(".scroll > *"));
  return {width, scroll: page.documentElement.scrollWidth, images: images.length,
          shown: images.filter(i => i.complete && i.naturalWidth > 100 && i.clientHeight > 100).length,
          outside: outside.map(e => e.outerHTML.slice(0, 80))};
}
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(measure);
  document.body.textContent = "MEASURED" + JSON.stringify(found) + "MEASURED";
});
</script>%s"""

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium on the PATH (Debian and Ubuntu: apt-get install chromium)"
)


def browse(folder: Path, address: Path, *options: str) -> str:
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options,
               "--virtual-time-budget=20000", f"--user-data-dir={folder / 'profile'}", address.as_uri()]  # fmt: skip
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=180, cwd=folder).stdout


@needs_chromium
def test_nothing_overflows_at_any_width(made: Path, tmp_path: Path) -> None:
    """The page itself, in frames of several widths; what is wider scrolls in a box of its own."""
    report = html.escape(made.read_text(encoding="utf-8"))
    frames = "".join(f'<iframe srcdoc="{report}" style="border:0;width:{w}px;height:900px"></iframe>' for w in WIDTHS)
    (tmp_path / "frames.html").write_text(FRAMES % frames, encoding="utf-8")
    dom = browse(tmp_path, tmp_path / "frames.html", "--dump-dom", "--window-size=1400,900")
    measured: List[Dict[str, Any]] = json.loads(html.unescape(dom.split("MEASURED")[1]))
    for frame, width in zip(measured, WIDTHS):
        assert frame["width"] == frame["scroll"] == width, frame
        assert frame["outside"] == [] and frame["shown"] == frame["images"] >= 12, frame


@needs_chromium
def test_curves_and_diagrams_can_be_seen(made: Path, tmp_path: Path) -> None:
    browse(tmp_path, made, f"--screenshot={tmp_path / 'page.png'}", "--window-size=1000,4000")
    with Image.open(tmp_path / "page.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    colours = {"curve": (0x00, 0x72, 0xB2), "other curve": (0xD5, 0x5E, 0x00), "way": (0x9B, 0xC3, 0xE0)}
    for name, colour in colours.items():
        assert (abs(pixels - colour).max(-1) < 12).sum() > 1500, name
    assert 0.01 < (pixels.max(-1) < 250).mean() < 0.5
