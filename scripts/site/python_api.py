"""The reference of the Python API, from signatures and docstrings."""

import importlib
import inspect
import re
from typing import Any, Iterator, List, Tuple

FENCE = "\n```"
# Where a user imports it from, and what.
API: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("fairseq_milk", ("load", "register")),
    ("fairseq_milk.live", ("Translator", "Session", "Translation", "Piece", "Event", "Knob", "TextOptions")),
    ("fairseq_milk.functional", ()),
    (
        "fairseq_milk.attention",
        ("build_attention", "SimultaneousAttention", "Stop", "Lookback", "Memory", "Heads", "AttentionOptions"),
    ),
    ("fairseq_milk.generation", ("load_model", "StreamingSession", "DecodingOptions")),
    ("fairseq_milk.scoring", ("Record", "Convention", "Latency", "corpus_latency", "sentence_latency")),
    ("fairseq_milk.scoring.score", ("score_file", "score_records", "Score", "Metrics")),
    ("fairseq_milk.scoring.generate_log", ("read_generate_log", "GenerateLog")),
    ("fairseq_milk.scoring.table", ("read_results", "Result")),
    ("fairseq_milk.analysis.plane", ("quality_latency_plane",)),
    ("fairseq_milk.analysis.diagram", ("schedule_diagram", "schedule_diagrams", "Panel")),
    ("fairseq_milk.analysis.histogram", ("delay_histogram",)),
)


def api_page() -> str:
    """A section per module, with its functions and classes.  No names: all that the module exports."""
    return "\n\n".join(part for module, names in API for part in _module(module, names))


def _module(name: str, names: Tuple[str, ...]) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"## `{name}`"
    yield markdown(inspect.getdoc(module) or "")
    for member in names or module.__all__:
        yield from _member(member, getattr(module, member))


def _member(name: str, value: Any) -> Iterator[str]:
    yield f"### `{name}`"
    yield f"```text\n{_signature(name, value)}\n```"
    yield markdown(_docstring(value))
    if inspect.isclass(value):
        for method, function in _methods(value):
            yield f"#### `{name}.{method}`"
            yield f"```text\n{_signature(method, function)}\n```"
            yield markdown(inspect.getdoc(function) or "")


def _docstring(value: Any) -> str:
    """Without that of a parent, or of a named tuple that has none of its own."""
    text = value.__doc__ or ""
    return "" if text.startswith(f"{value.__name__}(") else inspect.cleandoc(text)


def _methods(value: type) -> List[Tuple[str, Any]]:
    """Public methods and properties with a docstring, in the order of the source."""
    found = []
    for name, member in vars(value).items():
        member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(member) and member.__doc__:
            found.append((name, member))
    return found


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:
        return name
    text = f"{name}{signature}"
    text = re.sub(r"\b(torch|typing|fairseq_milk(\.\w+)*)\.(?=\w)", "", text)
    if len(text) <= 100:
        return text
    arguments = [
        re.sub(r"\b(torch|typing|fairseq_milk(\.\w+)*)\.(?=\w)", "", str(p)) for p in signature.parameters.values()
    ]
    return f"{name}(\n    " + ",\n    ".join(arguments) + ",\n" + text[text.rindex(")") :]


def markdown(docstring: str) -> str:
    """A docstring as Markdown: plain paragraphs as text, what is laid out by hand as it is."""
    parts: List[str] = []
    for n, paragraph in enumerate(docstring.split("\n\n")):
        if n > 0 and _laid_out(paragraph):
            together = parts[-1].endswith(FENCE) and parts.pop()[: -len(FENCE)] + "\n"
            parts.append(f"{together or '```text'}\n{paragraph}{FENCE}")
        elif paragraph:
            parts.append(paragraph.replace("|", "\\|").replace("*", "\\*"))
    return "\n\n".join(parts)


def _laid_out(paragraph: str) -> bool:
    """Equations, examples and lists of arguments."""
    return any(re.match(r" |>>> |\w+(, \w+)*: +\S", line) for line in paragraph.splitlines())
