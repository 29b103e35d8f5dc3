"""`--arch milk_rnmt`: the RNMT+ translator with a choice of attention, and its named sizes."""

from typing import Any

from fairseq.models import register_model, register_model_architecture

from .base import SimultaneousModel
from .config import SHORT_TRAINING_PACE, MilkRNMTConfig
from .decoder import RNMTDecoder
from .encoder import BidirectionalRNMTEncoder, RNMTEncoder
from .target import RNMTSentence, RNMTTarget


@register_model("milk_rnmt", dataclass=MilkRNMTConfig)
class MilkRNMT(SimultaneousModel):
    """Encoder, attention and decoder of the paper (section 5.1)."""

    encoder: RNMTEncoder
    decoder: RNMTDecoder

    config = MilkRNMTConfig

    @classmethod
    def build_encoder(cls, options: Any, *parts: Any) -> RNMTEncoder:
        return (BidirectionalRNMTEncoder if options.encoder_bidirectional else RNMTEncoder)(options, *parts)

    @classmethod
    def build_decoder(cls, options: Any, *parts: Any) -> RNMTDecoder:
        return RNMTDecoder(options, *parts)

    def target(self, batch: int, room: int) -> RNMTTarget:
        return RNMTTarget(self.decoder, batch, room)

    def sentence(self, room: int) -> RNMTSentence:
        return RNMTSentence(self.decoder, room)


def size(args: Any, layers: int, units: int) -> None:
    """Both stacks `layers` deep and everything `units` wide, for a short training, unless the user says otherwise."""
    args.head_pace = getattr(args, "head_pace", SHORT_TRAINING_PACE)
    args.encoder_layers = getattr(args, "encoder_layers", layers)
    args.decoder_layers = getattr(args, "decoder_layers", layers)
    for name in ("embed_dim", "hidden_size", "energy_dim"):
        setattr(args, name, getattr(args, name, units))


@register_model_architecture("milk_rnmt", "milk_rnmt_small")
def milk_rnmt_small(args: Any) -> None:
    """For corpora of the size of Multi30k."""
    size(args, layers=2, units=256)


@register_model_architecture("milk_rnmt", "milk_rnmt_tiny")
def milk_rnmt_tiny(args: Any) -> None:
    """For the demo: trained in minutes on a laptop."""
    size(args, layers=1, units=128)
    args.dropout = getattr(args, "dropout", 0.0)


@register_model_architecture("milk_rnmt", "rnmt_offline")
def rnmt_offline(args: Any) -> None:
    """The paper's offline system: bidirectional encoder, soft attention."""
    args.encoder_bidirectional = getattr(args, "encoder_bidirectional", True)
    args.attention = getattr(args, "attention", "soft")
