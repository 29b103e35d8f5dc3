"""Everything that is known to fairseq by name: importing this registers it."""

from .checkpoints import guard_checkpoints

guard_checkpoints()

from . import criterions, optim  # noqa: E402
from .models import milk_rnmt  # noqa: E402
from .scoring import scorer  # noqa: E402
from .tasks import simultaneous_translation  # noqa: E402

__all__ = ["criterions", "milk_rnmt", "optim", "scorer", "simultaneous_translation"]
