"""Stops: where the heads stop.

A stop has two methods.  `expected`, for training, gives alpha, the distribution of the stop position over the whole
source; `stops`, for decoding, decides whether a head that inspects a token stops there.  `e` is the monotonic energy,
None for a fixed schedule.
"""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from ..functional import expected_alignment, expected_alignment_parallel, wait_k_delay
from ..functional.masking import at_least_float32, spread
from .memory import Memory
from .options import AttentionOptions

THRESHOLD = 0.5  # probability above which a hard head stops; its energy is then positive


class AttentionState(NamedTuple):
    """The state of training between two target steps."""

    alpha: Tensor  # (B, J), alpha_{i-1}; (B, H, J) with several heads
    i: int  # number of target steps so far


class Stop(nn.Module, ABC):
    """Base class, with the properties that other code uses."""

    learned = False  # whether it has an energy e and learns when to stop
    streaming = True  # whether it may stop before the source has ended
    knobs: Tuple[str, ...] = ()  # names of the attributes that may be changed for decoding
    k: Optional[int] = None  # of wait-k, with its emission rate: an exported model counts by itself
    rate = 1.0

    @property
    def exportable(self) -> bool:
        """Whether an exported model can decide: it reads everything, counts, or compares e with a threshold."""
        return not self.streaming or self.k is not None or "threshold" in self.knobs

    @property
    def active(self) -> bool:
        """Whether it is learned and no longer inactive, see `set_thresholds`."""
        return self.learned

    def set_thresholds(self, head_after: int, noise_ramp: int) -> None:
        """Set the updates before a learned stop is active, and those over which its noise then grows."""

    def seen(self, memory: Memory, i: int, steps: Optional[int]) -> Optional[Memory]:
        """The source up to the stop of target token i, or of `steps` tokens from i on, if the stop is fixed.

        None if the stop is a distribution, see `expected`.
        """
        return None

    def expected(self, e: Tensor, memory: Memory, state: AttentionState, hard: bool) -> Tensor:
        """alpha, shaped as the energies e: (..., J), or (..., I, J) for several target steps.

        hard: the heads decide as in decoding, and alpha is one-hot.
        """
        raise NotImplementedError(f"the stop of {type(self).__name__} is known beforehand")

    @abstractmethod
    def stops(self, e: Optional[Tensor], read: Tensor, i: int) -> Tensor:
        """Whether a head that inspects token `read` (from 1), with energy e, stops there for target token i (from 1).

        e, read: (..., n) -> (..., n) bool.  At the end of the source the decoder writes regardless of the result.
        """


class FixedStop(Stop):
    """A fixed schedule, which stops for target token i after `delay(i)` tokens."""

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()

    @abstractmethod
    def delay(self, i: int) -> float:
        """g_i for a long source; math.inf for all of it."""

    def stops(self, e: Optional[Tensor], read: Tensor, i: int) -> Tensor:
        return read >= self.delay(i)

    def seen(self, memory: Memory, i: int, steps: Optional[int]) -> Memory:
        if steps is None:
            return memory.until(self.delay(i))
        return memory.until_each([self.delay(step) for step in range(i, i + steps)])


class ReadAll(FixedStop):
    """t_i = |x|: reads the whole source (offline)."""

    streaming = False

    def delay(self, i: int) -> float:
        return math.inf


class WaitK(FixedStop):
    """t_i = min(k + floor((i-1) / r), |x|)   (Ma et al. 2018).  k may be changed for decoding."""

    knobs = ("k",)
    k: int

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__(options)
        wait_k_delay(options.k, 1, options.rate)  # raises for k or rate out of range
        self.k, self.rate = options.k, options.rate

    def delay(self, i: int) -> float:
        return wait_k_delay(self.k, i, self.rate)


class Bernoulli(Stop):
    """A learned head (paper, sections 3.1 and 3.4): it inspects tokens in order and stops at j with probability p_ij.

    p_ij = sigmoid(e_ij + N(0, n)) in training, [e_ij > 0] if the schedule is hard.

    n is the standard deviation of the noise, which drives p towards 0 and 1 so that the expected schedule resembles
    the hard one.  It may grow to its value over the first `noise_ramp` updates: with little noise the head can move,
    with much noise it becomes decisive.  For the first `head_after` updates it is inactive: the whole source is read,
    and its parameters get no gradient.
    """

    learned = True
    knobs = ("threshold",)

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()
        self.final_noise = self.noise = options.noise
        self.head_after = self.noise_ramp = self.num_updates = 0
        self.preserve_mass = options.preserve_mass
        self.exact = options.exact_alignment
        self.alignment = expected_alignment if options.exact_alignment else expected_alignment_parallel
        self.threshold = THRESHOLD

    def set_thresholds(self, head_after: int, noise_ramp: int) -> None:
        self.head_after, self.noise_ramp = head_after, noise_ramp

    def set_num_updates(self, num_updates: int) -> None:
        """fairseq calls this before every update."""
        self.num_updates = num_updates
        since = max(0, num_updates - self.head_after)
        self.noise = self.final_noise * min(1.0, (since + 1) / (self.noise_ramp + 1))

    @property
    def active(self) -> bool:
        return self.num_updates >= self.head_after

    def expected(self, e: Tensor, memory: Memory, state: AttentionState, hard: bool) -> Tensor:
        e = e.to(state.alpha.dtype)
        if hard:
            stops = self._decides(e + spread(memory.ending, e))  # every head stops at the last token
            return expected_alignment(torch.where(stops, math.inf, -math.inf).to(e), state.alpha, None, False)
        if self.training and not self.active:
            return spread(memory.last, e) + 0.0 * e  # gradients of zero, which ranks can exchange
        if self.training and self.noise > 0:
            e = torch.add(e, torch.randn_like(e), alpha=self.noise)
        if not self.exact:
            return self.alignment(e, state.alpha, memory.lengths, self.preserve_mass)
        limits = memory.ending if self.preserve_mass else memory.barrier
        return self.alignment(e + spread(limits, e), state.alpha, None, False)

    def stops(self, e: Optional[Tensor], read: Tensor, i: int) -> Tensor:
        assert e is not None
        return self._decides(e)

    def _decides(self, e: Tensor) -> Tensor:
        """[p > threshold], computed from the energy: [e > 0] by default.  Half precision would round the threshold."""
        stop: Tensor = at_least_float32(e) > math.log(self.threshold / (1 - self.threshold))
        return stop
