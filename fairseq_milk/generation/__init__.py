"""Simultaneous decoding: batched for `fairseq-generate`, live in a session; the same decisions, one code."""

from .decoding import DecodingOptions, translate
from .generator import SimultaneousGenerator, full_read
from .session import StreamingSession, Written

__all__ = ["DecodingOptions", "SimultaneousGenerator", "StreamingSession", "Written", "full_read", "translate"]
