"""Renders the templates beside this file, with all values escaped."""

from pathlib import Path
from typing import Any, NamedTuple, Sequence

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .drawing import visible

TEMPLATES = Path(__file__).resolve().parent / "templates"


class Cell(NamedTuple):
    """A table cell.  kind: 'strong', 'code' or empty for plain text.  small: text that follows in small letters."""

    text: object
    small: str = ""
    kind: str = ""


class Table(NamedTuple):
    """A table whose first `texts` columns hold text and the others figures."""

    heading: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    texts: int


def environment() -> Environment:
    """A Jinja environment that escapes every value and replaces characters that cannot be shown."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) or value is None else visible(str(value)),
    )


def render_page(template: str, stylesheet: str, **values: Any) -> str:
    """The page of a template and a stylesheet, given by their file names."""
    css = Markup((TEMPLATES / stylesheet).read_text(encoding="utf-8"))
    return environment().get_template(template).render(stylesheet=css, **values)
