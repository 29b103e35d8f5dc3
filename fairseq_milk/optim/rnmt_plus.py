"""`--lr-scheduler rnmt_plus`: the learning rate of RNMT+ (Chen et al. 2018).

    lr(t) = lr * min(1 + t (n - 1) / (n p),  n,  n (2n)^((s - n t) / (e - s))),    never below lr / 2 once n t >= e

t: number of updates, n: replicas, p: warm-up updates per replica, s and e: start and end of the decay, in n t.
"""

from dataclasses import dataclass, field, fields
from typing import Any, List, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II

from ..console.errors import UserError, check_numbers, require


@dataclass
class RNMTPlusScheduleConfig(FairseqDataclass):
    lr_replicas: int = field(
        default=32,
        metadata={
            "help": "n of the schedule; independent of the world size, so that one GPU can use the schedule of 32"
        },
    )
    lr_warmup: int = field(default=500, metadata={"help": "p: warm-up updates per replica"})
    lr_decay_start: int = field(default=600000, metadata={"help": "s: where the decay starts, in updates x replicas"})
    lr_decay_end: int = field(default=1200000, metadata={"help": "e: where the decay ends, in updates x replicas"})
    lr: List[float] = II("optimization.lr")


def rnmt_plus_multiplier(t: int, n: int, p: int, s: int, e: int) -> float:
    """The factor of the base learning rate at update t: 1 at the start, n at the peak, 1/2 at the end.

    As in the authors' codebase the decay never starts before the warm-up has ended, at n t = n (n p + 1).
    """
    warm_end = n * p
    start = max(warm_end + 1, s / n)
    end = e / n
    if t <= warm_end:
        return 1 + (n - 1) * t / warm_end
    if t <= start:
        return float(n)
    if t >= end:
        return 0.5
    return float(n * (2.0 * n) ** ((start - t) / (end - start)))


@register_lr_scheduler("rnmt_plus", dataclass=RNMTPlusScheduleConfig)
class RNMTPlusSchedule(FairseqLRScheduler):
    def __init__(self, cfg: RNMTPlusScheduleConfig, optimizer: Any) -> None:
        super().__init__(cfg, optimizer)
        for name in ("lr_replicas", "lr_warmup"):
            require(getattr(cfg, name) >= 1, name, getattr(cfg, name), "must be at least 1")
        require(cfg.lr_decay_start >= 0, "lr_decay_start", cfg.lr_decay_start, "must be 0 or a positive number")
        check_numbers({f.name: getattr(cfg, f.name) for f in fields(RNMTPlusScheduleConfig) if f.name != "_name"})
        warm_end = cfg.lr_replicas * (cfg.lr_replicas * cfg.lr_warmup + 1)
        if cfg.lr_decay_end <= max(warm_end, cfg.lr_decay_start):
            raise UserError(
                f"--lr-decay-end must come after --lr-decay-start {cfg.lr_decay_start} and after the warm-up, which "
                f"ends at {warm_end} updates x replicas (--lr-replicas, --lr-warmup), got {cfg.lr_decay_end}"
            )
        self.step_update(0)

    def step_update(self, num_updates: int) -> float:
        c = self.cfg
        multiplier = rnmt_plus_multiplier(num_updates, c.lr_replicas, c.lr_warmup, c.lr_decay_start, c.lr_decay_end)
        self.optimizer.set_lr(c.lr[0] * multiplier)
        return float(self.optimizer.get_lr())

    def step(self, epoch: int, val_loss: Optional[float] = None) -> float:
        super().step(epoch, val_loss)
        return float(self.optimizer.get_lr())
