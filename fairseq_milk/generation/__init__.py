"""Simultaneous decoding: batched for `fairseq-generate`, live in a session; the same decisions, one code."""

from .decoding import DecodingOptions, Hypothesis, translate
from .generator import AlignedBeamSearch, SimultaneousGenerator, full_read
from .knobs import DecodingKnobs, add_knobs, check_knobs, configure_head, decoding_options
from .loading import attention_of, load_model, load_words
from .session import StreamingSession, Written
from .words import SourceWords, TargetText, WordSession

__all__ = [
    "AlignedBeamSearch",
    "DecodingKnobs",
    "DecodingOptions",
    "Hypothesis",
    "SimultaneousGenerator",
    "SourceWords",
    "StreamingSession",
    "TargetText",
    "WordSession",
    "Written",
    "add_knobs",
    "attention_of",
    "check_knobs",
    "configure_head",
    "decoding_options",
    "full_read",
    "load_model",
    "load_words",
    "translate",
]
