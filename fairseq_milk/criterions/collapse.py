"""Says so, once and in plain words, when the schedule degenerates in training."""

import logging
import math
from typing import Dict, Set, Tuple

import torch.distributed as dist

logger = logging.getLogger(__name__)

PATIENCE = 500  # updates for which training must have been at a standstill
HARD_PATIENCE = 2000  # the same for validation, whose hard schedule reads everything while a head is still undecided
WAITS = 0.99  # share of target tokens before which the whole source is read, above which a head only waits
HURRIES = 0.9  # share of target tokens, EOS aside, after the first source token, above which a head only hurries
REMEDIES = {
    "waits": "raise --latency-weight, --noise or --energy-bias",
    "hurries": "lower --latency-weight, start it later (--latency-after, --latency-ramp) or lower --energy-bias",
}


class CollapseAlarm:
    """Watches the sums that the criterion logs, of every update and of every batch of validation.

    Validation counts by itself: its schedule is hard, and pre-sigmoid noise hides in training what will be decoded.
    """

    names = ("loss", "ntokens", "nsentences", "latency_weight", "last_mass", "first_mass", "training", "learned")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """A new training begins."""
        self.updates = 0
        self.pressed = False  # lambda > 0 in the last update
        self.well: Dict[Tuple[str, bool], int] = {}  # when a symptom was last absent
        self.said: Set[str] = set()

    def watch(self, total: Dict[str, float]) -> None:
        training = total["training"] > 0
        if training:
            self.updates += 1
            self.pressed = total["latency_weight"] > 0
        if not math.isfinite(total["loss"]):
            self._say("the loss is not a number: lower --lr, or use --optimizer rnmt_adam, which rejects such steps")
            return
        for name, present in self._symptoms(total).items():
            if not present:
                self.well[name, training] = self.updates
            elif self.updates - self.well.get((name, training), 0) >= (PATIENCE if training else HARD_PATIENCE):
                self._say(self._words(name, training))

    def _symptoms(self, total: Dict[str, float]) -> Dict[str, bool]:
        tokens, learned = max(total["ntokens"], 1.0), total["learned"] > 0
        words = max(total["ntokens"] - total["nsentences"], 1.0)  # without EOS, which has good reason to wait
        return {
            "waits": learned and self.pressed and total["last_mass"] / tokens > WAITS,
            "hurries": learned and total["first_mass"] / words > HURRIES,
        }

    @staticmethod
    def _words(name: str, training: bool) -> str:
        since = f"for {PATIENCE} updates" if training else f"in every validation of {HARD_PATIENCE} updates"
        if name == "waits":
            return (
                f"{since} the head has read the whole source before every target token although the latency weight is "
                f"above 0: {REMEDIES[name]}"
            )
        return f"{since} the head has written nearly everything after the first source token: {REMEDIES[name]}"

    def _say(self, words: str) -> None:
        if words not in self.said and not (dist.is_available() and dist.is_initialized() and dist.get_rank() > 0):
            logger.warning("the schedule has collapsed: %s", words)
        self.said.add(words)


ALARM = CollapseAlarm()
