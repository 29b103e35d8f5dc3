"""Where the heads stop: the first half of a mechanism.

A stop answers twice.  In training it gives alpha, the distribution of the stop position over the whole source; in
decoding it says of each token whether a head that inspects it stops there.  `e` is the monotonic energy, None for a
schedule that is fixed beforehand.
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

THRESHOLD = 0.5  # of the probability above which a hard head stops: where its energy changes sign


class AttentionState(NamedTuple):
    """What training carries from target step to target step."""

    alpha: Tensor  # (B, J), alpha_{i-1}; (B, H, J) with several heads
    i: int  # target steps made


class Stop(nn.Module, ABC):
    """What others may ask of it stands here."""

    learned = False  # it has an energy e, and learns when to stop
    streaming = True  # it may stop before the source has ended
    knobs: Tuple[str, ...] = ()  # attributes that may be changed for decoding

    def seen(self, memory: Memory, i: int, steps: Optional[int]) -> Optional[Memory]:
        """Where that is known beforehand: the source up to the stop of target token i, or of `steps` tokens from i on.

        None: the stop is a distribution, `expected`.
        """
        return None

    def expected(self, e: Tensor, memory: Memory, state: AttentionState, hard: bool) -> Tensor:
        """alpha, shaped as the energies e: (..., J), or (..., I, J) for several target steps.

        hard: the heads decide as in decoding, and alpha is one-hot.
        """
        raise NotImplementedError(f"the stop of {type(self).__name__} is known beforehand")

    @abstractmethod
    def stops(self, e: Optional[Tensor], read: Tensor, i: int) -> Tensor:
        """Does a head that inspects token number `read` (from 1), of energy e, stop there for target token i (from 1)?

        e, read: (..., n) -> (..., n) bool.  The end of the source is not its business: there the decoder writes
        whatever the answer.
        """


class FixedStop(Stop):
    """A schedule that is known beforehand: it stops for target token i after `delay(i)` tokens, whatever they are."""

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()

    @abstractmethod
    def delay(self, i: int) -> float:
        """g_i of a source that is long enough; math.inf: all of it."""

    def stops(self, e: Optional[Tensor], read: Tensor, i: int) -> Tensor:
        return read >= self.delay(i)

    def seen(self, memory: Memory, i: int, steps: Optional[int]) -> Memory:
        if steps is None:
            return memory.until(self.delay(i))
        return memory.until_each([self.delay(step) for step in range(i, i + steps)])


class ReadAll(FixedStop):
    """t_i = |x|: offline."""

    streaming = False

    def delay(self, i: int) -> float:
        return math.inf


class WaitK(FixedStop):
    """t_i = min(k + floor((i-1) / r), |x|)   (Ma et al. 2018).  k may be changed for decoding."""

    knobs = ("k",)

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__(options)
        wait_k_delay(options.k, 1, options.rate)  # refuses a k or rate out of range
        self.k, self.rate = options.k, options.rate

    def delay(self, i: int) -> float:
        return wait_k_delay(self.k, i, self.rate)


class Bernoulli(Stop):
    """A learned head (paper, sections 3.1 and 3.4): from where it stands it stops at token j with probability p_ij.

    p_ij = sigmoid(e_ij + N(0, n)) in training, [e_ij > 0] where the schedule is hard.

    n is the standard deviation of the noise, which drives p towards 0 and 1 so that the expected schedule resembles
    the hard one.  It may grow to its value over the first `noise_ramp` updates: little noise lets the head move, much
    makes it decide.
    """

    learned = True
    knobs = ("threshold",)

    def __init__(self, options: AttentionOptions) -> None:
        super().__init__()
        self.final_noise, self.noise_ramp = options.noise, options.noise_ramp
        self.noise = options.noise
        self.preserve_mass = options.preserve_mass
        self.exact = options.exact_alignment
        self.alignment = expected_alignment if options.exact_alignment else expected_alignment_parallel
        self.threshold = THRESHOLD

    def set_num_updates(self, num_updates: int) -> None:
        """fairseq calls this before every update."""
        self.noise = self.final_noise * min(1.0, (num_updates + 1) / (self.noise_ramp + 1))

    def expected(self, e: Tensor, memory: Memory, state: AttentionState, hard: bool) -> Tensor:
        e = e.to(state.alpha.dtype)
        if hard:
            stops = self._decides(e + spread(memory.ending, e))  # the last token is always a stop
            return expected_alignment(torch.where(stops, math.inf, -math.inf).to(e), state.alpha, None, False)
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
        """[p > threshold], by the energy: [e > 0] by default.  Half precision would round the limit too."""
        stop: Tensor = at_least_float32(e) > math.log(self.threshold / (1 - self.threshold))
        return stop
