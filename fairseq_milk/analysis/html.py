"""HTML in which text stays text: everything is escaped but what was made here."""

import html
from typing import Sequence

from .drawing import visible

VOID = ("img", "meta")  # elements without an end


class Markup(str):
    """HTML put together by `element`.  Any other string is text."""


def escape(text: object) -> Markup:
    """Text as HTML that shows it, whatever is in it; `Markup` as it is."""
    return text if isinstance(text, Markup) else Markup(html.escape(visible(str(text))))


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """<tag attribute="...">children</tag>.  _ stands for - in attributes; one that is a Python keyword ends in it."""
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{pairs}>")
    return Markup(f"<{tag}{pairs}>{join(children)}</{tag}>")


def join(children: Sequence[object]) -> Markup:
    return Markup("".join(escape(child) for child in children))


def table(heading: Sequence[object], rows: Sequence[Sequence[object]], texts: int = 1) -> Markup:
    """In a box that scrolls by itself.  The first `texts` columns hold text, the others figures."""

    def line(cell: str, values: Sequence[object]) -> Markup:
        kinds = ["text" if column < texts else "figure" for column in range(len(values))]
        return element("tr", *(element(cell, value, class_=kind) for value, kind in zip(values, kinds)))

    body = element("tbody", *(line("td", values) for values in rows))
    return element("div", element("table", element("thead", line("th", heading)), body), class_="scroll")


def section(heading: str, *children: object) -> Markup:
    return element("section", element("h2", heading), *children)


def listing(terms: Sequence[Sequence[object]]) -> Markup:
    """Terms with what there is to say about each."""
    return element("dl", *(join([element("dt", term), element("dd", said)]) for term, said in terms))
