"""fairseq_milk: Monotonic Infinite Lookback attention for simultaneous translation, as a fairseq plugin.

`fairseq-train --user-dir fairseq_milk` and `import fairseq_milk` after `import fairseq` make everything known to
fairseq; `fairseq_milk.register()` does so explicitly, importing fairseq if necessary.  The mathematics in
`fairseq_milk.functional` and `fairseq_milk.attention` needs torch alone: importing it imports and patches no fairseq.
"""

import sys

from .live.loading import load
from .version import __version__


def register() -> None:
    """Register the models, criteria, optimisers, scorer and task with fairseq and apply the patches of `host`.

    Imports fairseq, which takes some seconds the first time.  Further calls do nothing.
    """
    from .host.registration import register

    register()


if "fairseq" in sys.modules:
    register()

__all__ = ["__version__", "load", "register"]
