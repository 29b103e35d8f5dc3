"""The paper as pure functions on tensors.  Needs torch only.

Letters of the paper: h encoder state, s decoder state, e monotonic energy, p = sigmoid(e) the probability of *stopping*
(WRITE), alpha the distribution of the stop position, u soft energy, beta the attention, c the context, g the delay,
gamma = |y| / |x|.  Sizes: B batch, I target, J source, D and A features; i is target, j is source.  Batch first, padded
on the right, lengths with EOS.  alpha, beta and g are float32 or better, whatever the type of the arguments.
"""

from .alignment import expected_alignment, expected_alignment_parallel
from .energy import additive_energy
from .latency import (
    average_lagging,
    average_proportion,
    differentiable_average_lagging,
    expected_delays,
    wait_k_delay,
    wait_k_delays,
)
from .lookback import chunkwise_lookback, infinite_lookback, prefix_softmax
from .masking import last_position, padding_mask

__all__ = [
    "additive_energy",
    "average_lagging",
    "average_proportion",
    "chunkwise_lookback",
    "differentiable_average_lagging",
    "expected_alignment",
    "expected_alignment_parallel",
    "expected_delays",
    "infinite_lookback",
    "last_position",
    "padding_mask",
    "prefix_softmax",
    "wait_k_delay",
    "wait_k_delays",
]
