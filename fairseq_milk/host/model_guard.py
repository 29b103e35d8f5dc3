"""What a checkpoint may ask fairseq to build: a model of this plugin, for a translation."""

from typing import Any, Dict

from fairseq.models import ARCH_MODEL_REGISTRY
from omegaconf import OmegaConf

from ..console.errors import UserError

TASKS = ("simultaneous_translation", "translation")


def refuse_foreign(state: Dict[str, Any], path: str) -> None:
    """Before anything of a checkpoint, as `load_checkpoint_to_cpu` returns it, is built."""
    try:
        refuse_fairseq_models(state["cfg"]["model"])
        refuse_other_tasks(state["cfg"]["task"])
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def refuse_fairseq_models(cfg: Any) -> None:
    """Some evaluate their options as Python, which a checkpoint may have brought along."""
    architecture = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
    if architecture is None and OmegaConf.is_config(cfg) and len(cfg) == 1:
        architecture = next(iter(cfg))  # of a folder of fairseq-hydra-train
    kind = ARCH_MODEL_REGISTRY.get(architecture)
    if kind is None or kind.__module__.split(".")[0] == "fairseq":
        raise UserError(
            f"'{architecture}' is not a model of fairseq_milk (--arch milk_rnmt and its sizes): "
            "use --task translation for fairseq's own"
        )


def refuse_other_tasks(cfg: Any) -> None:
    """The task of a checkpoint is built before its model, and fairseq has many."""
    name = getattr(cfg, "_name", None) or getattr(cfg, "task", None)
    if name not in TASKS:
        raise UserError(f"its task is '{name}', not {' or '.join(TASKS)}")
