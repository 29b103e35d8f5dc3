"""Simultaneous decoding: in batches for `fairseq-generate`, and in streaming sessions, with the same rules.

Names are imported when they are used, because `generation.schedule` needs neither torch nor fairseq.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .batch import Hypothesis, translate
    from .generator import AlignedBeamSearch, SimultaneousGenerator, full_read
    from .knobs import DecodingKnobs, check_knobs, configure_head, decoding_options
    from .loading import attention_of, load_model, load_words
    from .schedule import DecodingOptions, TokenSession, Written
    from .session import StreamingSession

__all__ = [
    "AlignedBeamSearch",
    "DecodingKnobs",
    "DecodingOptions",
    "Hypothesis",
    "SimultaneousGenerator",
    "StreamingSession",
    "TokenSession",
    "Written",
    "attention_of",
    "check_knobs",
    "configure_head",
    "decoding_options",
    "full_read",
    "load_model",
    "load_words",
    "translate",
]

_MODULES = ("schedule", "batch", "generator", "knobs", "loading", "session")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            found = vars(importlib.import_module(f"{__name__}.{module}"))
            if name in found:
                return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
