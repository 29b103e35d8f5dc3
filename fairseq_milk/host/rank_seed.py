"""Seeds the random numbers of each rank of a data-parallel training differently.

fairseq gives all ranks the same seed before every update, so that they would use the same dropout masks and noise for
different sentences.
"""

import torch
import torch.distributed as dist
from fairseq.distributed import utils as distributed_utils


def seed_by_rank() -> None:
    """Called before each forward.  The new seed depends on fairseq's seed, the rank and the number of calls since.

    Rank 0, and a single process, keep their seed.  A resumed training draws the same as an uninterrupted one,
    because fairseq's seed depends on the update alone.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return
    rank = distributed_utils.get_data_parallel_rank()
    if rank > 0:
        torch.manual_seed(int(torch.randint(2**62, ())) + rank)
