"""Has a schedule collapsed?  Into reading everything before the first word, or into writing without reading."""

from typing import Iterable, NamedTuple, Optional, Sequence, Tuple

from .records import Record

WAITS = 0.99  # share of the target tokens written after the whole source, above which a schedule only waits
HURRIES = 0.75  # share of the target words written after one source token, from which all quartiles of the delays are 1
SHORTEST = 3  # source tokens without EOS: a shorter sentence leaves a schedule no choice

WAITING, HURRYING = "reads everything", "writes at once"
NOT_LEARNED = ("soft", "waitk")  # mechanisms whose schedule is what they were told


class Reads(NamedTuple):
    """How far a schedule reads, in shares of the target tokens of sentences that leave it a choice.

    full: written after the whole source with its EOS.  minimal: of those other than EOS, which has good reason to wait,
    written after one source token or none.  Both are 0 where there is nothing to judge.
    """

    full: float
    minimal: float

    @property
    def collapse(self) -> Optional[str]:
        """`WAITING`, `HURRYING`, or None for a schedule that is neither.

        An offline model, wait-k with a large k and MILk with lambda = 0 read everything by design.
        """
        if self.full > WAITS:
            return WAITING
        return HURRYING if self.minimal >= HURRIES else None


def count_reads(sentences: Iterable[Tuple[Sequence[float], int, bool]]) -> Reads:
    """sentences: the delays g_i, |x| with EOS, and whether the last delay is that of EOS."""
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
    """Of a generation."""
    return count_reads((record.delays, len(record.source) + 1, record.eos_written) for record in records)


def collapse_of(records: Iterable[Record], attention: Optional[str]) -> str:
    """`WAITING` or `HURRYING` if the learned schedule of a generation has collapsed, else empty.

    attention: the mechanism as the summary of the generation has it; None for a model without one of ours.
    """
    learned = attention is not None and attention not in NOT_LEARNED
    return (reads_of(records).collapse or "") if learned else ""
