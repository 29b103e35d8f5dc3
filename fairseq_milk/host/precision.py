"""Refuses `--fp16`, `--bf16` and `--amp` on a CPU with one sentence.

fairseq assumes a TPU for --bf16, and its other half-precision modes need CUDA: both end in a traceback.
"""

from typing import Any, Callable

import torch
from fairseq.trainer import Trainer

from ..console.errors import UserError

OPTIONS = ("memory_efficient_fp16", "memory_efficient_bf16", "fp16", "bf16", "amp")
_init: Callable[..., None] = Trainer.__init__


def has_gpu(cfg: Any) -> bool:
    return torch.cuda.is_available() and not cfg.common.cpu


def refuse_half_precision(cfg: Any) -> None:
    """Raise a UserError for a half-precision mode of fairseq on a CPU."""
    asked = [option for option in OPTIONS if getattr(cfg.common, option, False)]
    if asked and not has_gpu(cfg):
        raise UserError(
            f"--{asked[0].replace('_', '-')} needs a GPU; on a CPU, --product-precision bf16 computes the matrix "
            "products in bfloat16 and everything else in float32"
        )


def _checked_init(self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
    if hasattr(cfg, "common"):  # otherwise an old Namespace, which fairseq converts
        refuse_half_precision(cfg)
    _init(self, cfg, *args, **kwargs)


def install() -> None:
    Trainer.__init__ = _checked_init
