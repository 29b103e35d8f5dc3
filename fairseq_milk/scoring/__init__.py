"""Records of translated sentences and their scores, each with a signature.

The names exported here need torch only.  `scoring.score` also needs sacreBLEU, `scoring.scorer` fairseq.
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
from .records import Markers, Record, find_markers, join_words

__all__ = [
    "CONVENTIONS",
    "Convention",
    "CorpusLatency",
    "Latency",
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
