"""Thresholds of a training: numbers of updates, or shares of its length.

A share fits trainings of any length whose learning rate falls slowly, for example 0.3 of 3,000 updates or of three in a
test.  The schedule of RNMT+ falls early: with it a number of updates is the better choice.
"""

import logging
import math
from typing import Any, Dict, Iterable, Mapping

from omegaconf.errors import OmegaConfBaseException

from ..console.errors import require

logger = logging.getLogger(__name__)


def length_of_run(task: Any, batches: int = 0) -> int:
    """The number of updates of a training: --max-update, or those of --max-epoch epochs if they are fewer.

    0 if it is not known.  batches: the number per epoch and rank; 0 before the training data has been loaded.
    """
    limits = [option(task, "max_update", 0), _updates_of_epochs(task, batches)]
    return min((limit for limit in limits if limit > 0), default=0)


def _updates_of_epochs(task: Any, batches: int) -> int:
    epochs, frequencies = int(option(task, "max_epoch", 0)), option(task, "update_freq", [1])
    listed = [math.ceil(batches / max(frequency, 1)) for frequency in frequencies[:epochs]]
    return sum(listed) + listed[-1] * (epochs - len(listed)) if listed else 0


def option(task: Any, name: str, otherwise: Any) -> Any:
    """An option of the command; `otherwise` if it is not given, or if the task is used from Python."""
    try:
        return getattr(task.cfg, name) or otherwise
    except (AttributeError, OmegaConfBaseException):
        return otherwise


def check_threshold(name: str, threshold: float) -> None:
    """Raise a UserError unless it is a share or a number of updates."""
    finite = 0 <= threshold < float("inf")
    valid = finite and (threshold < 1 or threshold == int(threshold))
    require(valid, name, threshold, "must be 0, a share of the training below 1, or a number of updates")


def thresholds_in_updates(thresholds: Mapping[str, float], length: int) -> Dict[str, int]:
    """The thresholds in updates.  Below 1 they are shares of `length`, which is 0 if it is not known."""
    return {name: int(t) if t >= 1 else round(t * length) for name, t in thresholds.items()}


def tell_length(length: int, parts: Iterable[Any]) -> None:
    """Tell the model and the criterion the length of the training, and log what shares of it are in updates.

    A warning if the length is not known, which is 0.
    """
    shares: Dict[str, float] = {}
    for part in parts:
        part.set_length(length)
        shares.update((name, share) for name, share in part.thresholds.items() if 0 < share < 1)
    options = {name: f"--{name.replace('_', '-')} {share}" for name, share in shares.items()}
    if shares and length:
        updates = thresholds_in_updates(shares, length)
        logger.info(f"of {length} updates " + ", ".join(f"{options[name]} is {updates[name]}" for name in shares))
    elif shares:
        logger.warning(
            f"{', '.join(options.values())}: shares of the length of the training, which is not known, count as 0, so "
            "that the schedule is learned from the first update, before the model has learned to look at the source. "
            "Give --max-update or --max-epoch, or numbers of updates"
        )
