"""A user directory for tests: our task, on which every rank prints its parameters and random numbers."""

import hashlib
import os
from typing import Any

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.tasks import register_task

import fairseq_milk  # noqa: F401
from fairseq_milk.tasks.simultaneous_translation import SimultaneousTranslationConfig, SimultaneousTranslationTask


@register_task("witnessed_translation", dataclass=SimultaneousTranslationConfig)
class WitnessedTranslationTask(SimultaneousTranslationTask):
    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        super().optimizer_step(optimizer, model, update_num)
        digest = hashlib.sha1(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
        rank = distributed_utils.get_data_parallel_rank() if distributed_utils.dist.is_initialized() else 0
        drawn = hashlib.sha1(torch.get_rng_state().numpy().tobytes()).hexdigest()
        os.write(1, f"witness update={update_num + 1} rank={rank} parameters={digest} drawn={drawn}\n".encode())
