"""Says so, once and in plain words, when the schedule degenerates in training."""

import logging
import math
from typing import Dict, Optional, Set

logger = logging.getLogger(__name__)

PATIENCE = 500  # updates in a row before a standstill is called a collapse


class CollapseAlarm:
    """Watches the sums that the criterion logs, update by update."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.said: Set[str] = set()
        self.streak: Dict[str, int] = {}

    def watch(self, total: Dict[str, float]) -> None:
        for name, happening in self._symptoms(total).items():
            self.streak[name] = self.streak.get(name, 0) + 1 if happening else 0
            patience = 1 if name == "nan" else PATIENCE
            if self.streak[name] >= patience and name not in self.said:
                self.said.add(name)
                logger.warning(self._words(name))

    @staticmethod
    def _symptoms(total: Dict[str, float]) -> Dict[str, bool]:
        tokens = max(total["ntokens"], 1.0)
        learned = total["latency_weight"] > 0  # lambda > 0: somebody wants a schedule
        return {
            "nan": not math.isfinite(total["loss"]),
            "waits": learned and total["last_mass"] / tokens > 0.99,
            "hurries": learned and total["delay"] / tokens < 1.01,
        }

    @staticmethod
    def _words(name: str) -> str:
        what: Dict[str, Optional[str]] = {
            "nan": "the loss is not a number any more: lower --lr, or use --optimizer rnmt_adam, which rejects such steps",
            "waits": (
                f"for {PATIENCE} updates the head has read the whole source before every target token although the "
                "latency weight is above 0: raise --latency-weight, --noise or --energy-bias"
            ),
            "hurries": (
                f"for {PATIENCE} updates the head has written everything after the first source token: lower "
                "--latency-weight, start it later (--latency-after, --latency-ramp) or lower --energy-bias"
            ),
        }
        return f"the schedule has collapsed: {what[name]}"


ALARM = CollapseAlarm()
