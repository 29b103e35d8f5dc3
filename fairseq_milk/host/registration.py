"""Registers the plugin: `register` imports fairseq, patches it and registers all classes."""

import contextlib
import importlib
import logging
from typing import Iterator

# Each registers its classes when it is imported.  Given as strings, because they import this package themselves.
MODULES = (
    "criterions",
    "models.milk_rnmt",
    "models.milk_transformer",
    "optim",
    "scoring.scorer",
    "tasks.simultaneous_translation",
)

_registered = False


def register() -> None:
    """See `fairseq_milk.register`."""
    global _registered
    if _registered:
        return
    with _without_speech_warning():
        import fairseq.tasks  # noqa: F401
    from . import amp_optimizer, checkpoint_reading, checkpoint_writing, command_line, precision

    amp_optimizer.install()
    checkpoint_reading.install()
    checkpoint_writing.install()
    command_line.install()
    precision.install()
    package = __name__.partition(".")[0]
    for module in MODULES:
        importlib.import_module(f"{package}.{module}")
    _registered = True


@contextlib.contextmanager
def _without_speech_warning() -> Iterator[None]:
    """Suppress the message of fairseq's speech task, on import, that tensorboardX is not installed."""
    logger = logging.getLogger("fairseq.tasks.text_to_speech")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
