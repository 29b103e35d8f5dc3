"""Base class of the decoders of this plugin: the interface to fairseq."""

from abc import abstractmethod
from typing import Any, Dict, List, Optional, Tuple

from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from ..attention import Memory, SimultaneousAttention
from ..console.errors import UserError
from .encoder import EncoderOut
from .output_layer import OutputLayer

Extra = Dict[str, Tensor]
IncrementalState = Dict[str, Any]  # fairseq's: named tensors by name


class SimultaneousDecoder(FairseqIncrementalDecoder):
    """Computes the input of the output layer for all target tokens at once, or for one after the other."""

    output: OutputLayer

    @property
    @abstractmethod
    def attentions(self) -> List[SimultaneousAttention]:
        """The attentions to the source, bottom first; the properties of the first hold for all."""

    @abstractmethod
    def _all(self, tokens: Tensor, encoder_out: EncoderOut, hard: bool) -> Tuple[Tensor, Extra]:
        """The features of all target tokens.  tokens: (B, I), each the one before -> (B, I, D)."""

    @abstractmethod
    def _next(
        self, tokens: Tensor, encoder_out: EncoderOut, incremental_state: IncrementalState
    ) -> Tuple[Tensor, Extra]:
        """The features of the next target token, the whole source having been read.  tokens: (B,) -> (B, 1, D)."""

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[EncoderOut] = None,
        incremental_state: Optional[IncrementalState] = None,
        features_only: bool = False,
        hard: Optional[bool] = None,
        **unused: Any,
    ) -> Tuple[Tensor, Extra]:
        """prev_output_tokens: (B, I) -> logits (B, I, V), and of the schedule

            attn:    (B, I, J), beta; of several layers the last one's, averaged over its heads
            alpha:   (B, I, J), of the position at which the last head stops
            alphas:  (B, S, I, J), of each of S schedules
            src_lengths: (B,)

        hard: the schedule decides (e > 0) instead of being expected; by default in evaluation, not in training.
        features_only: stop before the output layer, whose input is returned instead of the logits.
        incremental_state: only the last of the tokens is new (fairseq's beam search, which is offline).
        """
        assert encoder_out is not None
        if incremental_state is None:
            features, extra = self._all(prev_output_tokens, encoder_out, not self.training if hard is None else hard)
        elif self.attentions[0].streaming:
            raise UserError(
                "fairseq's own search reads the whole source first: decode a simultaneous model with "
                "--task simultaneous_translation"
            )
        else:
            features, extra = self._next(prev_output_tokens[:, -1], encoder_out, incremental_state)
        return (features if features_only else self.output(features)), extra

    def whole_source(
        self, name: str, attention: SimultaneousAttention, encoder_out: EncoderOut, incremental_state: IncrementalState
    ) -> Memory:
        """The memory of an attention, projected once and kept under this name."""
        kept = self.get_incremental_state(incremental_state, name)
        if not kept:
            memory = attention.remember(encoder_out.h, encoder_out.lengths)
            kept = {**memory.keys} if attention.values is None else {"values": memory.h, **memory.keys}
            self.set_incremental_state(incremental_state, name, kept)
        keys: Dict[str, Tensor] = {energy: kept[energy] for energy in attention.energies()}
        return attention.packed(kept.get("values", encoder_out.h), keys, encoder_out.lengths)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        for name, saved in incremental_state.items():
            incremental_state[name] = {key: x.index_select(0, new_order) for key, x in saved.items()}

    def max_positions(self) -> int:
        return int(1e5)
