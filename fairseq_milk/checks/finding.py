"""What a check says."""

from typing import Any, Dict, NamedTuple

OK, WARN, FAIL, SKIP = "ok", "warn", "fail", "skip"


class Finding(NamedTuple):
    """One sentence for people and the figures behind it for programs."""

    name: str
    status: str  # OK, WARN, FAIL or SKIP
    sentence: str
    figures: Dict[str, Any] = {}


def without_head(name: str) -> Finding:
    return Finding(name, SKIP, "this attention has no learned head: its schedule is given")


def untrained(name: str) -> Finding:
    return Finding(name, SKIP, "nothing has been learned yet: check the first checkpoint")
