"""The result of a check."""

from typing import Any, Dict, NamedTuple

OK, WARN, FAIL, SKIP = "ok", "warn", "fail", "skip"


class Finding(NamedTuple):
    """The result of one check: a sentence for the reader and the figures behind it for programs."""

    status: str  # OK, WARN, FAIL or SKIP
    sentence: str
    figures: Dict[str, Any] = {}


WITHOUT_HEAD = Finding(SKIP, "this attention has no learned head: its schedule is fixed")
UNTRAINED = Finding(SKIP, "the model is not trained yet: check the first checkpoint")
