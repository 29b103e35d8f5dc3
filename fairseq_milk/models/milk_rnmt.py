"""`--arch milk_rnmt`: the RNMT+ translator with a choice of attention, and its named sizes."""

from typing import Any

from fairseq.models import register_model, register_model_architecture

from .base import SimultaneousModel, embeddings
from .config import MilkRNMTConfig
from .decoder import RNMTDecoder
from .encoder import BidirectionalRNMTEncoder, RNMTEncoder
from .misuse import warn_of_other_task
from .target import RNMTTarget


@register_model("milk_rnmt", dataclass=MilkRNMTConfig)
class MilkRNMT(SimultaneousModel):
    """Encoder, attention and decoder of the paper (section 5.1)."""

    encoder: RNMTEncoder
    decoder: RNMTDecoder

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "MilkRNMT":
        options = MilkRNMTConfig.read(cfg)
        warn_of_other_task(task, options.attention)
        source, target = task.source_dictionary, task.target_dictionary
        source_embedding, embedding = embeddings(options, source, target)
        encoder_class = BidirectionalRNMTEncoder if options.encoder_bidirectional else RNMTEncoder
        products = options.products()
        encoder = encoder_class(options, source, source_embedding, products)
        return cls(encoder, RNMTDecoder(options, target, embedding, products))

    def target(self, batch: int, room: int) -> RNMTTarget:
        return RNMTTarget(self.decoder, batch, room)


def size(args: Any, layers: int, units: int) -> None:
    """Both stacks `layers` deep and everything `units` wide, unless the user says otherwise."""
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
    """The demo's: minutes on a laptop."""
    size(args, layers=1, units=128)
    args.dropout = getattr(args, "dropout", 0.0)


@register_model_architecture("milk_rnmt", "rnmt_offline")
def rnmt_offline(args: Any) -> None:
    """The paper's offline system: bidirectional encoder, soft attention."""
    args.encoder_bidirectional = getattr(args, "encoder_bidirectional", True)
    args.attention = getattr(args, "attention", "soft")
