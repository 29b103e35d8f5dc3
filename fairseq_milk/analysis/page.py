"""Pages from the templates beside this file, in which text from outside stays text."""

from pathlib import Path
from typing import Any, NamedTuple, Sequence

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .drawing import visible

TEMPLATES = Path(__file__).resolve().parent / "templates"


class Cell(NamedTuple):
    """Of a table.  kind: 'strong', 'code' or plain; small: what follows in small letters."""

    text: object
    small: str = ""
    kind: str = ""


class Table(NamedTuple):
    """The first `texts` columns hold text, the others figures."""

    heading: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    texts: int


def environment() -> Environment:
    """Jinja's, which escapes every value; what no font shows and XML cannot hold is replaced."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) or value is None else visible(str(value)),
    )


def render_page(template: str, stylesheet: str, **values: Any) -> str:
    """A template with its stylesheet, both by the names of their files."""
    css = Markup((TEMPLATES / stylesheet).read_text(encoding="utf-8"))
    return environment().get_template(template).render(stylesheet=css, **values)
