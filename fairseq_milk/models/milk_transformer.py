"""`--arch milk_transformer`: a causal Transformer with a choice of attention to the source, and its named sizes."""

from typing import Any

from fairseq.models import register_model, register_model_architecture

from .base import SimultaneousModel
from .config import SHORT_TRAINING_PACE, MilkTransformerConfig
from .transformer_decoder import TransformerDecoder
from .transformer_encoder import TransformerEncoder
from .transformer_target import TransformerTarget


@register_model("milk_transformer", dataclass=MilkTransformerConfig)
class MilkTransformer(SimultaneousModel):
    """The schedules of the paper in the model of Vaswani et al. (2017)."""

    encoder: TransformerEncoder
    decoder: TransformerDecoder

    config = MilkTransformerConfig

    @classmethod
    def build_encoder(cls, options: Any, *parts: Any) -> TransformerEncoder:
        return TransformerEncoder(options, *parts)

    @classmethod
    def build_decoder(cls, options: Any, *parts: Any) -> TransformerDecoder:
        return TransformerDecoder(options, *parts)

    def target(self, batch: int, room: int) -> TransformerTarget:
        return TransformerTarget(self.decoder, batch, room)


def size(args: Any, layers: int, dim: int, heads: int) -> None:
    """Set defaults: `layers` layers of `dim` units in both stacks, feed-forward layers four times as wide."""
    defaults = {
        "encoder_layers": layers,
        "decoder_layers": layers,
        "embed_dim": dim,
        "ffn_dim": 4 * dim,
        "attention_heads": heads,
        "embed_pace": dim**0.5,
        "head_pace": SHORT_TRAINING_PACE,
    }
    for name, value in defaults.items():
        setattr(args, name, getattr(args, name, value))


@register_model_architecture("milk_transformer", "milk_transformer_small")
def milk_transformer_small(args: Any) -> None:
    """For corpora of the size of Multi30k."""
    size(args, layers=3, dim=256, heads=4)


@register_model_architecture("milk_transformer", "milk_transformer_tiny")
def milk_transformer_tiny(args: Any) -> None:
    """For the synthetic language of examples/verb_final."""
    size(args, layers=2, dim=128, heads=4)
    args.dropout = getattr(args, "dropout", 0.0)
