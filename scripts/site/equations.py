"""Equations of the pages, in LaTeX, as MathML, which browsers draw by themselves."""

import re

from latex2mathml.converter import convert

BLOCK = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def as_mathml(text: str) -> str:
    """The text of a page, each ```math block replaced."""
    return BLOCK.sub(lambda match: f'<div class="equation">{convert(match.group(1), display="block")}</div>', text)
