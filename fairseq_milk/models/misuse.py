"""Warnings about probable mistakes in using a model."""

import logging
from typing import Any, Mapping

from torch import Tensor, nn

from ..attention import ATTENTIONS

logger = logging.getLogger(__name__)
EMBEDDINGS = ("encoder.embedding.weight", "decoder.embedding.weight")


def warn_of_other_task(task: Any, attention: str) -> None:
    """Warn if a task of fairseq is used, which neither reports latency nor decodes with the schedule."""
    if type(task).__module__.startswith("fairseq.") and ATTENTIONS[attention][0].streaming:
        logger.warning(
            f"--attention {attention} without --task simultaneous_translation: fairseq's own tasks decode with the "
            "whole source, whatever schedule is learned, and report no latency"
        )


def languages_swapped(model: nn.Module, state: Mapping[str, Tensor]) -> bool:
    """Whether the embeddings would fit if source and target were swapped."""
    found = [state[name].size(0) if name in state else 0 for name in EMBEDDINGS]
    own = model.state_dict()
    wanted = [own[name].size(0) if name in own else 0 for name in EMBEDDINGS]
    return found != wanted and found == wanted[::-1]
