"""Has the schedule collapsed?  To reading everything first, or to writing after the first token."""

import torch

from ..criterions.collapse import HURRIES, REMEDIES, WAITS
from ..functional import expected_delays, padding_mask
from .finding import FAIL, OK, Finding, untrained, without_head
from .subject import Subject


def check_policy(subject: Subject) -> Finding:
    """The delays of the hard schedule: their quartiles, and how many are the whole source or a single token.

    Minimal reads are counted without EOS: a head that waits for the end of the source alone hurries all the same.
    """
    if not subject.learned:
        return without_head("policy")
    if not subject.trained:
        return untrained("policy")
    schedule, written = subject.schedule(hard=True), subject.written
    g = expected_delays(schedule["alpha"])
    full = float((g >= schedule["src_lengths"].unsqueeze(1))[written].float().mean())
    words = ~padding_mask(subject.target_lengths - 1, g.size(1))  # without EOS, which has good reason to wait
    minimal = float(((g <= 1) & words).sum() / words.sum().clamp(min=1))
    quartiles = [float(q) for q in g[written].quantile(torch.tensor([0.25, 0.5, 0.75], dtype=g.dtype))]
    figures = {
        "full_reads": full,
        "minimal_reads": minimal,
        "mean_delay": float(g[written].mean()),
        "quartiles": quartiles,
    }
    if full > WAITS:
        sentence = f"the head reads the whole source before {full:.1%} of the target tokens: {REMEDIES['waits']}"
        return Finding("policy", FAIL, sentence, figures)
    if minimal > HURRIES:
        sentence = f"the head writes {minimal:.1%} of the target after one source token: {REMEDIES['hurries']}"
        return Finding("policy", FAIL, sentence, figures)
    sentence = (
        f"delays of {quartiles[0]:.0f}, {quartiles[1]:.0f}, {quartiles[2]:.0f} tokens (quartiles); {full:.0%} of the "
        f"target after the whole source, {minimal:.0%} after one token"
    )
    return Finding("policy", OK, sentence, figures)
