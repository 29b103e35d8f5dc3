"""Shared by all pictures: literal text, fonts for all scripts, and reproducible files."""

import io
import logging
import re
import unicodedata
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Sequence, Tuple, Union

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from ..console.files import write_atomically

logger = logging.getLogger(__name__)
FORMATS = ("png", "svg", "pdf")

# The first has Latin, Greek, Cyrillic, Arabic and Hebrew; the others are used if they are installed
FONTS = (
    "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans SC", "Noto Sans KR", "Noto Sans JP",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "Noto Sans", "Noto Sans Devanagari", "Noto Sans Arabic",
    "Noto Sans Hebrew", "Noto Sans Thai", "Noto Sans Georgian", "Noto Sans Armenian", "Noto Sans Bengali",
    "Noto Sans Tamil", "Noto Sans Telugu", "Noto Sans Gujarati", "Noto Sans Khmer", "Noto Sans Myanmar",
    "Noto Sans Ethiopic", "Noto Emoji", "FreeSans", "Arial Unicode MS", "Unifont",
)  # fmt: skip
LETTERS = 12  # largest number of letters in a warning

# Characters that XML cannot hold: control characters, surrogates, non-characters
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def visible(text: str) -> str:
    """The text on one line, with U+FFFD for every character that cannot be shown."""
    return _INVISIBLE.sub("\ufffd", re.sub(r"\s", " ", text))


def literal(text: str) -> str:
    """The text with $ escaped, which matplotlib would take as the beginning of a formula."""
    return visible(text).replace("$", r"\$")


def legend_label(text: str) -> str:
    """`literal` text for a legend, in which matplotlib hides labels that begin with an underscore."""
    return literal(f"\u200b{text}" if text.startswith("_") else text)


# ---- fonts ----------------------------------------------------------------------------------------------------------


@cache
def installed_fonts() -> Tuple[str, ...]:
    """The installed fonts of FONTS, including those installed after matplotlib cached its list."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            font_manager.fontManager.addfont(path)
        except Exception:  # matplotlib skips fonts that it cannot read, too
            continue
    names = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(name for name in FONTS if name in names)


@cache
def letters_of(font: str) -> FrozenSet[int]:
    """The code points that a font can show."""
    path = font_manager.findfont(font_manager.FontProperties(family=font))
    return frozenset(font_manager.get_font(path).get_charmap())


def missing_letters(figure: Figure) -> List[str]:
    """The letters of the figure that no installed font has, in order."""
    texts: Iterable[Any] = figure.findobj(Text)
    letters = dict.fromkeys("".join(text.get_text() for text in texts))
    fonts = [letters_of(font) for font in installed_fonts()]
    shown = [letter for letter in letters if unicodedata.category(letter)[0] not in "CZ"]  # controls, spaces
    return [letter for letter in shown if not any(ord(letter) in font for font in fonts)]


def _script(letter: str) -> str:
    """The script of a letter, for example CJK; 'symbols' if its Unicode name does not begin with a script."""
    first = unicodedata.name(letter, "unknown").split()[0]
    is_script = unicodedata.category(letter)[0] in "LM"
    return "symbols" if not is_script else first if first == "CJK" else first.capitalize()


def _warn_missing(figure: Figure, paths: Sequence[Path]) -> None:
    letters = missing_letters(figure) if paths else []
    if letters:
        named = "".join(letters[:LETTERS]) + ("…" if len(letters) > LETTERS else "")
        scripts = ", ".join(sorted(set(map(_script, letters)), key=str.casefold))
        logger.warning(
            f"no font on this machine has {named} ({scripts}), boxes in {' and '.join(map(str, paths))}: install fonts "
            "such as Noto (Debian: fonts-noto-cjk for Chinese, Japanese and Korean, fonts-noto-core for others), or "
            "write an SVG"
        )


# ---- files ----------------------------------------------------------------------------------------------------------


@contextmanager
def house_style() -> Iterator[None]:
    """For drawing and saving; without matplotlib's warnings about missing letters, for which `save` has a sentence."""
    settings: Dict[str, Any] = {
        "font.family": [*installed_fonts(), "sans-serif"],  # the last is for viewers of an SVG that have none of them
        "font.sans-serif": ["DejaVu Sans"],
        "text.usetex": False,  # a token with a backslash is not a command
        "svg.fonttype": "none",  # text is kept as text: it can be searched, and is drawn with the fonts of the viewer
        "svg.hashsalt": "fairseq_milk",  # makes files reproducible
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        for message in ("Glyph .* missing from", "Matplotlib currently does not support"):
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        yield


def save(figure: Figure, stem: Union[str, Path], formats: Sequence[str] = ("png", "svg"), dpi: int = 150) -> List[Path]:
    """Write STEM.png and STEM.svg, each atomically.

    Logs a warning about letters that no font has: they are boxes in PNG and PDF.
    """
    paths = {suffix: Path(f"{stem}.{suffix}") for suffix in formats}
    for suffix, path in paths.items():
        write_atomically(path, render(figure, suffix, dpi))
    _warn_missing(figure, [path for suffix, path in paths.items() if suffix != "svg"])
    return list(paths.values())


def render(figure: Figure, suffix: str, dpi: int = 150) -> bytes:
    """The content of a file of this format, without a date, so that it is reproducible."""
    dates: Dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    file = io.BytesIO()
    with house_style():
        figure.savefig(file, format=suffix, dpi=dpi, facecolor="white", metadata=dates.get(suffix))
    return file.getvalue()


def small_png(figure: Figure, colours: int) -> bytes:
    """A small PNG for a page, at most 760 pixels wide and with at most this number of colours."""
    picture = Image.open(io.BytesIO(render(figure, "png", dpi=min(110, int(760 / figure.get_figwidth())))))
    file = io.BytesIO()
    picture.convert("RGB").quantize(colours).save(file, "png", optimize=True)
    return file.getvalue()
