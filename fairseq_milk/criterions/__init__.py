"""The training criterion of the paper."""

from .latency_augmented import LatencyAugmentedCriterion

__all__ = ["LatencyAugmentedCriterion"]
