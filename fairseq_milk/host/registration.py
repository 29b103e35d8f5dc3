"""Registers the plugin: `register` imports fairseq, patches it and registers all classes."""

import importlib
import logging
from functools import cache

# Each registers its classes when it is imported.  Given as strings, because they import this package themselves.
MODULES = (
    "criterions",
    "models.milk_rnmt",
    "models.milk_transformer",
    "optim",
    "scoring.scorer",
    "tasks.simultaneous_translation",
)


def release_criterion(name: str) -> None:
    """Remove fairseq's criterion of this name, which needs a SimulEval from before 2022 and cannot train a schedule."""
    from fairseq.criterions import CRITERION_REGISTRY

    CRITERION_REGISTRY.pop(name, None)


@cache
def register() -> None:
    """See `fairseq_milk.register`."""
    speech = logging.getLogger("fairseq.tasks.text_to_speech")  # warns on import that tensorboardX is not installed
    before = speech.level
    speech.setLevel(logging.ERROR)
    try:
        import fairseq.tasks  # noqa: F401
    finally:
        speech.setLevel(before)
    from . import amp_optimizer, checkpoint_reading, checkpoint_writing, command_line, precision

    for patch in (amp_optimizer, checkpoint_reading, checkpoint_writing, command_line, precision):
        patch.install()
    package = __name__.partition(".")[0]
    for module in MODULES:
        importlib.import_module(f"{package}.{module}")
