"""`--optimizer rnmt_adam`: Adam with the gradient-norm guard of RNMT+ instead of clipping.

    x = log(1 + max(norm, 0.01));  m, v: moving averages (decay 0.995) of x and x^2, w of 1, all from 0
    cap = m/w + 4 sqrt(max(v/w - (m/w)^2, 1e-6))
    reject if x > cap and w > 0.75, if norm >= 1e5, or if the norm is not finite

A rejected gradient is replaced by zero; Adam still moves by its momentum.  The averages are updated with min(x, cap)
from the first update on and reach the size of the gradients within a few dozen updates.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional

import torch
from fairseq.logging import metrics
from fairseq.optim import register_optimizer
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from omegaconf import II
from torch import Tensor

from ..console.errors import check_numbers, require

SMALLEST = 1e-30  # smallest epsilon: a smaller one could be 0 in float32, and Adam would divide by zero


class GradientNormGuard:
    """Detects gradient norms that are much larger than the recent ones."""

    decay, deviations, settled = 0.995, 4.0, 0.75
    largest = 1e5  # from this norm on a gradient is rejected in every update

    def __init__(self) -> None:
        self.mean = self.square = self.weight = 0.0
        self.rejected = 0

    def load(self, averages: Dict[str, Any]) -> None:
        """Takes up the averages of a checkpoint; ValueError if they are not numbers."""
        for name, value in averages.items():
            if name not in vars(self) or not (isinstance(value, (int, float)) and abs(value) < math.inf):
                raise ValueError("the averages of its gradient norms are damaged")
            setattr(self, name, value)

    def rejects(self, norm: float) -> bool:
        if not math.isfinite(norm):
            self.rejected += 1
            return True
        x = math.log(max(norm, 1e-2) + 1)
        cap = self._cap()
        reject = norm >= self.largest or (x > cap and self.weight > self.settled)
        self.rejected += reject
        self._learn(min(x, cap))
        return reject

    def _cap(self) -> float:
        weight = max(self.weight, 1e-6)
        mean = self.mean / weight
        variance = self.square / weight - mean * mean
        return mean + self.deviations * math.sqrt(max(variance, 1e-6))

    def _learn(self, x: float) -> None:
        for name, value in (("mean", x), ("square", x * x), ("weight", 1.0)):
            setattr(self, name, self.decay * getattr(self, name) + (1 - self.decay) * value)


@dataclass
class RNMTAdamConfig(FairseqAdamConfig):
    adam_eps: float = field(default=1e-6, metadata={"help": "epsilon for Adam optimizer"})
    fp16: bool = II("common.fp16")
    bf16: bool = II("common.bf16")
    amp: bool = II("common.amp")


@register_optimizer("rnmt_adam", dataclass=RNMTAdamConfig)
class RNMTAdam(FairseqAdam):
    """Adam with the gradient-norm guard.

    In half precision fairseq wraps this optimiser, and its gradients are unscaled only just before `step`.  With a loss
    scaler, norms that are not finite are left to the scaler.  With --clip-norm the guard sees the norm
    before clipping in single precision and after clipping in half precision.  The averages of the guard are saved with
    the optimiser, except with --amp, where a resumed run starts with new ones.
    """

    def __init__(self, cfg: RNMTAdamConfig, params: Any) -> None:
        require(cfg.adam_eps >= SMALLEST, "adam_eps", cfg.adam_eps, f"must be at least {SMALLEST}")
        require(cfg.weight_decay >= 0, "weight_decay", cfg.weight_decay, "must be 0 or a positive number")
        check_numbers({"adam_eps": cfg.adam_eps, "weight_decay": cfg.weight_decay})
        super().__init__(cfg, params)
        self.guard = GradientNormGuard()
        self._norm: Optional[float] = None  # before clipping, if known

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Optional[Callable[[Tensor], Tensor]] = None) -> Tensor:
        norm: Tensor = super().clip_grad_norm(max_norm, aggregate_norm_fn)
        if self.cfg.fp16 or self.cfg.amp:
            return norm
        value = float(norm)  # the only synchronisation of an update; fairseq's trainer needs this number too
        if not self.cfg.bf16:
            self._norm = value
        return norm if math.isfinite(value) else torch.zeros_like(norm)  # otherwise fairseq would end the training

    def step(self, closure: Optional[Callable[[], float]] = None, scale: float = 1.0, groups: Any = None) -> None:
        norm = self._norm if self._norm is not None else self._total_norm() / scale
        self._norm = None
        if self.guard.rejects(norm):
            for p in self.params:
                if p.grad is not None:
                    p.grad.zero_()
        metrics.log_scalar("rejected_steps", self.guard.rejected, weight=0, priority=650)
        super().step(closure, scale, groups)

    def _total_norm(self) -> float:
        norms = [p.grad.float().norm() for p in self.params if p.grad is not None]
        return float(torch.stack(norms).norm()) if norms else 0.0

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), "guard": dict(vars(self.guard))}

    def load_state_dict(self, state_dict: Dict[str, Any], optimizer_overrides: Optional[Dict[str, Any]] = None) -> None:
        state_dict = dict(state_dict)
        self.guard.load(state_dict.pop("guard", {}))
        super().load_state_dict(state_dict, optimizer_overrides)
