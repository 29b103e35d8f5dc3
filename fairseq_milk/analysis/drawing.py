"""What the pictures share: text shown as it is, fonts that have its letters, and files that are always the same."""

import warnings
from pathlib import Path
from typing import Any, Dict, List, Sequence, Union

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by the colour-blind
BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip

# The first has Latin, Greek, Cyrillic, Arabic and Hebrew; of the others, those that are installed
FONTS = ("DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Noto Sans", "Arial Unicode MS")


def literal(text: str) -> str:
    """matplotlib takes $...$ for mathematics."""
    return text.replace("$", r"\$")


def style() -> Dict[str, Any]:
    """For matplotlib.rc_context, around drawing and saving alike."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return {
        "font.family": [name for name in FONTS if name in installed] or ["sans-serif"],
        "svg.fonttype": "none",  # text stays text: it can be searched, and the viewer's fonts have all letters
        "svg.hashsalt": "fairseq_milk",  # the same file for the same picture
    }


def save(figure: Figure, stem: Union[str, Path], formats: Sequence[str] = ("png", "svg"), dpi: int = 150) -> List[Path]:
    """STEM.png and STEM.svg.  A letter that no font has becomes a box in the PNG, without a warning."""
    paths = []
    with matplotlib.rc_context(style()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        for suffix in formats:
            path = Path(f"{stem}.{suffix}")
            figure.savefig(path, dpi=dpi, facecolor="white", metadata={"Date": None} if suffix == "svg" else None)
            paths.append(path)
    return paths
