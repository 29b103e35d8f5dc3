"""Warns once when the schedule collapses during training."""

import logging
import math
from typing import Dict, Set, Tuple

import torch.distributed as dist

logger = logging.getLogger(__name__)

# Updates for which a symptom must last before the warning, in training and in validation, and their largest shares of a
# short run.  Validation has more patience: its hard schedule reads everything while a head is still undecided.
PATIENCE, HARD_PATIENCE = 500, 2000
SHARE, HARD_SHARE = 0.2, 0.5
LEAST = 20
WAITS = 0.99  # collapsed if more than this share of the target tokens is written after the whole source
HURRIES = 0.9  # collapsed if more than this share of the target tokens without EOS is written after one source token
HARD_HURRIES = 0.75  # the same for a hard schedule, as in scoring.collapse
REMEDIES = {
    "waits": "raise --latency-weight, --noise or --energy-bias",
    "hurries": "lower --latency-weight, start it later (--latency-after, --latency-ramp) or lower --energy-bias",
}


class CollapseAlarm:
    """Watches the sums that the criterion logs for every update and every batch of validation.

    Training and validation are counted separately: the schedule of validation is hard, and noise can hide the collapse
    in training.  Early signs in the log are `last_mass` or `first_mass` near 1.
    """

    names = ("loss", "ntokens", "nsentences", "latency_weight", "last_mass", "first_mass", "training", "learned")

    def __init__(self) -> None:
        self.reset()

    def reset(self, max_update: int = 0) -> None:
        """Reset for a training of `max_update` updates; 0: of unknown length."""
        self.patience, self.hard_patience = PATIENCE, HARD_PATIENCE
        if max_update > 0:
            self.patience = min(PATIENCE, max(LEAST, int(SHARE * max_update)))
            self.hard_patience = min(HARD_PATIENCE, max(LEAST, int(HARD_SHARE * max_update)))
        self.updates = 0
        self.latency_weighted = False  # whether lambda was above 0 in the last update
        self.last_absent: Dict[Tuple[str, bool], int] = {}  # update at which a symptom was last absent
        self.said: Set[str] = set()

    def watch(self, total: Dict[str, float]) -> None:
        training = total["training"] > 0
        if training:
            self.updates += 1
            self.latency_weighted = total["latency_weight"] > 0
        if not math.isfinite(total["loss"]):
            self._say("the loss is not finite: lower --lr, or use --optimizer rnmt_adam, which rejects such steps")
            return
        for name, present in self._symptoms(total).items():
            if not present:
                self.last_absent[name, training] = self.updates
            elif self.updates - self.last_absent.get((name, training), 0) >= self._patience(training):
                self._say(f"the schedule has collapsed: {self._words(name, training)}")

    def _symptoms(self, total: Dict[str, float]) -> Dict[str, bool]:
        tokens, learned = max(total["ntokens"], 1.0), total["learned"] > 0
        words = max(total["ntokens"] - total["nsentences"], 1.0)  # without EOS
        first = total["first_mass"] / words
        return {
            "waits": learned and self.latency_weighted and total["last_mass"] / tokens > WAITS,
            "hurries": learned and (first > HURRIES if total["training"] > 0 else first >= HARD_HURRIES),
        }

    def _patience(self, training: bool) -> int:
        return self.patience if training else self.hard_patience

    def _words(self, name: str, training: bool) -> str:
        patience = self._patience(training)
        since = f"for {patience} updates" if training else f"in every validation of {patience} updates"
        if name == "waits":
            return (
                f"{since} the head has read the whole source before every target token although the latency weight is "
                f"above 0: {REMEDIES[name]}"
            )
        return f"{since} the head has written nearly everything after the first source token: {REMEDIES[name]}"

    def _say(self, words: str) -> None:
        if words not in self.said and not (dist.is_available() and dist.is_initialized() and dist.get_rank() > 0):
            logger.warning(words)
        self.said.add(words)


ALARM = CollapseAlarm()
