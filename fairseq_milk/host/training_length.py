"""Thresholds of a training: numbers of updates, or shares of its length.

A share fits every corpus and batch size: 0.3 of the paper's 60,000 updates, of the 3,000 that two cores can make, or of
three in a test.
"""

from typing import Any

from omegaconf.errors import OmegaConfBaseException

from ..console.errors import require


def length_of_run(task: Any) -> int:
    """--max-update, where the task knows it; else 0."""
    try:
        return int(task.cfg.max_update)
    except (AttributeError, TypeError, ValueError, OmegaConfBaseException):
        return 0


def check_threshold(option: str, threshold: float) -> None:
    """Raise a UserError unless it is a share or a number of updates."""
    finite = 0 <= threshold < float("inf")
    valid = finite and (threshold < 1 or threshold == int(threshold))
    require(valid, option, threshold, "must be 0, a share of --max-update below 1, or a number of updates")


def in_updates(threshold: float, length: int) -> int:
    """`threshold` in updates.  Below 1 it is a share of `length`, which is 0 if it is not known."""
    return int(threshold) if threshold >= 1 else round(threshold * length)
