"""Has the schedule collapsed to reading the whole source first, or to writing after the first token?"""

import torch

from ..criterions.collapse import REMEDIES
from ..functional import expected_delays
from ..scoring.collapse import HURRYING, WAITING, count_reads
from .finding import FAIL, OK, UNTRAINED, WITHOUT_HEAD, Finding
from .subject import Subject


def check_policy(subject: Subject) -> Finding:
    """Quartiles of the delays of the hard schedule, and the shares that read the whole source or one token."""
    if not subject.learned:
        return WITHOUT_HEAD
    if not subject.trained:
        return UNTRAINED
    schedule, written = subject.schedule(hard=True), subject.written
    g = expected_delays(schedule["alpha"])
    delays = [row[:length] for row, length in zip(g.tolist(), subject.target_lengths.tolist())]
    reads = count_reads((row, length, True) for row, length in zip(delays, schedule["src_lengths"].tolist()))
    quartiles = g[written].quantile(torch.tensor([0.25, 0.5, 0.75], dtype=g.dtype)).tolist()
    figures = {
        "full_reads": reads.full,
        "minimal_reads": reads.minimal,
        "mean_delay": float(g[written].mean()),
        "quartiles": quartiles,
    }
    if reads.collapse == WAITING:
        sentence = f"the head reads the whole source before {reads.full:.1%} of the target tokens: {REMEDIES['waits']}"
        return Finding(FAIL, sentence, figures)
    if reads.collapse == HURRYING:
        sentence = f"the head writes {reads.minimal:.1%} of the target after one source token: {REMEDIES['hurries']}"
        return Finding(FAIL, sentence, figures)
    sentence = (
        f"delays of {quartiles[0]:.0f}, {quartiles[1]:.0f}, {quartiles[2]:.0f} tokens (quartiles); {reads.full:.0%} of "
        f"the target after the whole source, {reads.minimal:.0%} after one token"
    )
    return Finding(OK, sentence, figures)
