"""Latency with a signature, and BLEU with its own.

Functions on records, which need torch alone; `scoring.scorer` is the fairseq scorer on top of them.
"""

from .latency import (
    CONVENTIONS,
    PAPER,
    SIMULEVAL,
    SIMULEVAL_1_0,
    Convention,
    CorpusLatency,
    Latency,
    Schedule,
    corpus_latency,
    schedule_latency,
    sentence_latency,
    summarise,
    to_convention,
)
from .records import LATENCY, LatencyLog, Markers, Record, find_markers, join_words

__all__ = [
    "CONVENTIONS",
    "Convention",
    "CorpusLatency",
    "LATENCY",
    "Latency",
    "LatencyLog",
    "Markers",
    "PAPER",
    "Record",
    "SIMULEVAL",
    "SIMULEVAL_1_0",
    "Schedule",
    "corpus_latency",
    "find_markers",
    "join_words",
    "schedule_latency",
    "sentence_latency",
    "summarise",
    "to_convention",
]
