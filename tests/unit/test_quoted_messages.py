"""The messages that docs/how-to/troubleshoot.md quotes are those that the code prints."""

import ast
import re
from pathlib import Path
from typing import List, Set

import pytest

from fairseq_milk.criterions.collapse import CollapseAlarm

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/troubleshoot.md").read_text(encoding="utf-8")
TABLES = re.findall(r"^\| message \|.*\n\|.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
IN_TABLES = [quote for table in TABLES for quote in re.findall(r"^\| `([^|]+)` \|", table, re.MULTILINE)]
VALUE = "\0"  # in the place of what a message is filled with


def messages() -> Set[str]:
    """Every string of the package, with VALUE in the place of what an f-string computes."""
    found: Set[str] = set()
    for path in (ROOT / "fairseq_milk").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                found.add("".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values))
    return found


def is_part(quote: str, message: str) -> bool:
    """Whether the parts of `quote` between its '...' follow each other in `message`."""
    return re.search(".*".join(re.escape(part.strip()) for part in quote.split("...")), message) is not None


def warnings_of(caplog: pytest.LogCaptureFixture) -> List[str]:
    """The warnings of the alarm: everything is read first, everything is written at once, the loss is NaN."""
    sums = dict(loss=1.0, ntokens=100.0, nsentences=10.0, latency_weight=0.1, training=1.0, learned=1.0)
    alarm = CollapseAlarm()
    for masses in (dict(last_mass=100.0, first_mass=0.0), dict(last_mass=0.0, first_mass=90.0)):
        alarm.reset()
        for _ in range(alarm.patience):
            alarm.watch({**sums, **masses})
    alarm.watch({**sums, **masses, "loss": float("nan")})
    return [record.getMessage() for record in caplog.records]


def test_messages_in_tables() -> None:
    known = messages()
    assert len(IN_TABLES) > 15
    assert [quote for quote in IN_TABLES if not any(is_part(quote, message) for message in known)] == []


def test_quoted_warnings_of_a_training(caplog: pytest.LogCaptureFixture) -> None:
    said, quoted = warnings_of(caplog), re.findall(r"^> (.*)", PAGE, re.MULTILINE)
    assert len(quoted) == len(said) == 3
    assert all(message.endswith(quote) for quote, message in zip(quoted, said))


@pytest.mark.parametrize(
    "quote, fits", [("--beam ... needs the whole", True), ("... needs ... source", True), ("source ... needs", False)]
)
def test_is_part(quote: str, fits: bool) -> None:
    assert is_part(quote, f"--beam {VALUE} needs the whole source: decode greedily") is fits
