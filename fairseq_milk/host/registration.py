"""Everything that is known to fairseq by name: importing this registers it."""

import logging

_speech = logging.getLogger("fairseq.tasks.text_to_speech")
_speech.setLevel(logging.WARNING)  # it asks for tensorboardX, which nothing here needs, whenever fairseq is imported

from . import amp_optimizer, checkpoint_reading, checkpoint_writing  # noqa: E402

amp_optimizer.install()
checkpoint_reading.install()
checkpoint_writing.install()

from .. import criterions, optim  # noqa: E402
from ..models import milk_rnmt  # noqa: E402
from ..scoring import scorer  # noqa: E402
from ..tasks import simultaneous_translation  # noqa: E402

_speech.setLevel(logging.NOTSET)

__all__ = ["criterions", "milk_rnmt", "optim", "scorer", "simultaneous_translation"]
