"""fairseq_milk: Monotonic Infinite Lookback attention for simultaneous translation, as a fairseq plugin.

`--user-dir fairseq_milk` or `import fairseq_milk` registers everything.  Without fairseq the mathematics in
`fairseq_milk.functional` and `fairseq_milk.attention` can still be used.
"""

from importlib.util import find_spec

from .live.loading import load
from .version import __version__

if find_spec("fairseq") is not None:
    from .host import registration  # noqa: F401

__all__ = ["__version__", "load"]
