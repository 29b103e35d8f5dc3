"""`--arch milk_rnmt`: the RNMT+ translator with a choice of attention, and its named sizes."""

from typing import Any

from fairseq.models import register_model, register_model_architecture

from .base import SimultaneousModel, set_defaults
from .config import SHORT_TRAINING_PACE, MilkRNMTConfig
from .decoder import RNMTDecoder
from .encoder import BidirectionalRNMTEncoder, RNMTEncoder
from .target import RNMTSentence, RNMTTarget


@register_model("milk_rnmt", dataclass=MilkRNMTConfig)
class MilkRNMT(SimultaneousModel):
    """Encoder, attention and decoder of the paper (section 5.1)."""

    config, encoder_type, decoder_type, target_type = MilkRNMTConfig, RNMTEncoder, RNMTDecoder, RNMTTarget
    encoder: RNMTEncoder
    decoder: RNMTDecoder

    @classmethod
    def build_encoder(cls, options: Any, *parts: Any) -> RNMTEncoder:
        return (BidirectionalRNMTEncoder if options.encoder_bidirectional else RNMTEncoder)(options, *parts)

    def sentence(self, room: int) -> RNMTSentence:
        return RNMTSentence(self.decoder, room)


def size(args: Any, layers: int, units: int) -> None:
    """Both stacks `layers` deep and everything `units` wide, for a short training."""
    set_defaults(args, encoder_layers=layers, decoder_layers=layers, head_pace=SHORT_TRAINING_PACE)
    set_defaults(args, embed_dim=units, hidden_size=units, energy_dim=units)


@register_model_architecture("milk_rnmt", "milk_rnmt_small")
def milk_rnmt_small(args: Any) -> None:
    """For corpora of the size of Multi30k."""
    size(args, layers=2, units=256)


@register_model_architecture("milk_rnmt", "milk_rnmt_tiny")
def milk_rnmt_tiny(args: Any) -> None:
    """For the demo: trained in minutes on a laptop."""
    size(args, layers=1, units=128)
    set_defaults(args, dropout=0.0)


@register_model_architecture("milk_rnmt", "rnmt_offline")
def rnmt_offline(args: Any) -> None:
    """The paper's offline system: bidirectional encoder, soft attention."""
    set_defaults(args, encoder_bidirectional=True, attention="soft")
