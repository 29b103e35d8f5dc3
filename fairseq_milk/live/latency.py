"""AP, AL and DAL of one sentence under the paper's convention, without torch.

The figures equal those of `fairseq_milk.scoring`, which documents the formulas; a test compares them.
"""

from itertools import accumulate
from typing import NamedTuple, Sequence

from ..version import __version__


class Latency(NamedTuple):
    """Latency in source tokens, with its signature."""

    AP: float
    AL: float
    DAL: float
    signature: str = f"unit:subword|eos:yes|len:hyp|version:{__version__}"


def latency(delays: Sequence[int], source_length: int) -> Latency:
    """The latency of a sentence.  delays: g_i of every target token with EOS; source_length: |x| with EOS.

    >>> latency([2, 3, 4, 4], 4)[:3]
    (0.8125, 2.0, 2.0)
    """
    x, y = source_length, len(delays)
    lags = [g - i * x / y for i, g in enumerate(delays)]
    tau = next((i for i, g in enumerate(delays, start=1) if g >= x), y)
    return Latency(AP=sum(delays) / (x * y), AL=sum(lags[:tau]) / tau, DAL=sum(accumulate(lags, max)) / y)
