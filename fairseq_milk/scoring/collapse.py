"""Detects schedules that have collapsed to reading everything first, or to writing without reading."""

from typing import Iterable, NamedTuple, Optional, Sequence, Tuple

from .records import Record

WAITS = 0.99  # collapsed if more than this share of the target tokens is written after the whole source
HURRIES = 0.75  # collapsed if at least this share of the target words is written after one source token
SHORTEST = 3  # source tokens with EOS: sentences up to this length are not counted

WAITING, HURRYING = "reads everything", "writes at once"
NOT_LEARNED = ("soft", "waitk")  # mechanisms with a fixed schedule


class Reads(NamedTuple):
    """Shares of target tokens with an extreme delay, over sentences longer than `SHORTEST`.

    full: share of the tokens written after the whole source with its EOS.  minimal: share of the tokens other than EOS
    written after at most one source token.  Both are 0 if there are no such sentences.
    """

    full: float
    minimal: float

    @property
    def collapse(self) -> Optional[str]:
        """`WAITING`, `HURRYING`, or None for a schedule that has not collapsed.

        An offline model, wait-k with a large k and MILk with lambda = 0 read everything by design.
        """
        if self.full > WAITS:
            return WAITING
        return HURRYING if self.minimal >= HURRIES else None


def count_reads(sentences: Iterable[Tuple[Sequence[float], int, bool]]) -> Reads:
    """The shares over all sentences, given as delays g_i, |x| with EOS, and whether the last delay is that of EOS."""
    tokens = words = full = minimal = 0
    for delays, src_length, eos_written in sentences:
        if src_length <= SHORTEST:
            continue
        tokens += len(delays)
        full += sum(g >= src_length for g in delays)
        of_words = delays[: len(delays) - eos_written]
        words += len(of_words)
        minimal += sum(g <= 1 for g in of_words)
    return Reads(full / max(tokens, 1), minimal / max(words, 1))


def reads_of(records: Iterable[Record]) -> Reads:
    """The shares of a generation."""
    return count_reads((record.delays, len(record.source) + 1, record.eos_written) for record in records)


def collapse_of(records: Iterable[Record], attention: Optional[str]) -> str:
    """`WAITING` or `HURRYING` if the learned schedule of a generation has collapsed, else empty.

    attention: the name of the mechanism in the summary of the generation; None for a model of fairseq.
    """
    learned = attention is not None and attention not in NOT_LEARNED
    return (reads_of(records).collapse or "") if learned else ""
