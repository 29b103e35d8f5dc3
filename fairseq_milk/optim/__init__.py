"""Optimisation as in RNMT+: the learning-rate schedule and the gradient-norm guard."""

from .rnmt_adam import GradientNormGuard, RNMTAdam
from .rnmt_plus import RNMTPlusSchedule, rnmt_plus_multiplier

__all__ = ["GradientNormGuard", "RNMTAdam", "RNMTPlusSchedule", "rnmt_plus_multiplier"]
