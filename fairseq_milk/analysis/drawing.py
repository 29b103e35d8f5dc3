"""What the pictures share: text shown as it is, fonts that have its letters, and files that are always the same."""

import re
import unicodedata
import warnings
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

# Okabe and Ito's colours, told apart by the colour-blind
BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip

COLOURS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK)
MARKERS = "os^DvPX*<>p"

# Markers tell the systems apart in print; the first looks belong to the mechanisms.  No two are alike until all 77 are
# taken, and the first eleven have a marker each.
STYLES: Tuple[Tuple[str, str], ...] = tuple(
    (COLOURS[n % len(COLOURS)], MARKERS[n % len(MARKERS)]) for n in range(len(COLOURS) * len(MARKERS))
)

FAMILIES = ("milk", "waitk", "monotonic", "mocha", "soft")

# The first has Latin, Greek, Cyrillic, Arabic and Hebrew; of the others, those that are installed
FONTS = (
    "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Noto Sans", "Noto Sans Devanagari",
    "Noto Sans Arabic", "Noto Emoji", "Arial Unicode MS",
)  # fmt: skip

# What XML cannot hold and no font shows: control characters, halves of surrogate pairs, non-characters
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def visible(text: str) -> str:
    """The text on one line, with U+FFFD for every character that cannot be shown."""
    return _INVISIBLE.sub("\ufffd", re.sub(r"\s", " ", text))


def literal(text: str) -> str:
    """The text as matplotlib shows it unchanged: it takes $...$ for mathematics."""
    return visible(text).replace("$", r"\$")


def legend_label(text: str) -> str:
    """As `literal`, for a legend, where matplotlib hides what begins with an underscore."""
    return literal(f"\u200b{text}" if text.startswith("_") else text)


def text_width(text: str) -> int:
    """In letters: ideographs take the room of two, combining characters none."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def style_of(names: Iterable[str]) -> Dict[str, Tuple[str, str]]:
    """name -> its colour and marker: in every picture the same for a mechanism, those after them for other names.

    Spellings of one name share them: 'waitk' and 'wait-k (paper)'.
    """
    names = list(names)
    taken: Dict[str, Tuple[str, str]] = {}
    for key in sorted(dict.fromkeys(map(_plain, names)), key=lambda key: _family(key) is None):
        family = _family(key)
        own = [] if family is None else [STYLES[family]]
        free = [look for look in (*own, *STYLES[len(FAMILIES) :]) if look not in taken.values()]
        taken[key] = free[0] if free else STYLES[len(taken) % len(STYLES)]
    return {name: taken[_plain(name)] for name in names}


def _plain(name: str) -> str:
    return re.sub(r" \(paper\)$|[-_ ]", "", name).casefold()


def _family(plain: str) -> Optional[int]:
    return next((n for n, family in enumerate(FAMILIES) if plain.startswith(family)), None)


def style() -> Dict[str, Any]:
    """For matplotlib.rc_context, around drawing and saving alike."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return {
        "font.family": [name for name in FONTS if name in installed] or ["sans-serif"],
        "text.usetex": False,  # a token with a backslash is not a command
        "svg.fonttype": "none",  # text stays text: it can be searched, and the viewer's fonts have all letters
        "svg.hashsalt": "fairseq_milk",  # the same file for the same picture
    }


def save(figure: Figure, stem: Union[str, Path], formats: Sequence[str] = ("png", "svg"), dpi: int = 150) -> List[Path]:
    """STEM.png and STEM.svg.  A letter that no font has becomes a box in the PNG and the PDF, without a warning."""
    paths = [Path(f"{stem}.{suffix}") for suffix in formats]
    for path, suffix in zip(paths, formats):
        write(figure, path, suffix, dpi)
    return paths


def write(figure: Figure, file: Any, suffix: str, dpi: int = 150) -> None:
    """To a path or an open binary file.  Without a date: the same picture is the same file."""
    dates: Dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with matplotlib.rc_context(style()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(file, format=suffix, dpi=dpi, facecolor="white", metadata=dates.get(suffix))
