"""Random numbers of their own for every rank of a data-parallel training.

fairseq seeds all ranks alike before every update, so that they would drop the same units and draw the same noise on
different sentences.
"""

import torch
import torch.distributed as dist
from fairseq.distributed import utils as distributed_utils


def seed_by_rank() -> None:
    """Call before each forward.  The new seed depends on fairseq's, the rank and the number of calls since.

    Rank 0 keeps its numbers, as does a single process.  A resumed training draws the same as an uninterrupted one,
    because fairseq's seed depends on the update alone.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return
    rank = distributed_utils.get_data_parallel_rank()
    if rank > 0:
        torch.manual_seed(int(torch.randint(2**62, ())) + rank)
