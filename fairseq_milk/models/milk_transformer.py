"""`--arch milk_transformer`: a causal Transformer with a choice of attention to the source, and its named sizes."""

from typing import Any

from fairseq.models import register_model, register_model_architecture

from .base import SimultaneousModel, set_defaults
from .config import SHORT_TRAINING_PACE, MilkTransformerConfig
from .transformer_decoder import TransformerDecoder
from .transformer_encoder import TransformerEncoder
from .transformer_target import TransformerTarget


@register_model("milk_transformer", dataclass=MilkTransformerConfig)
class MilkTransformer(SimultaneousModel):
    """The schedules of the paper in the model of Vaswani et al. (2017)."""

    config = MilkTransformerConfig
    encoder_type, decoder_type, target_type = TransformerEncoder, TransformerDecoder, TransformerTarget
    encoder: TransformerEncoder
    decoder: TransformerDecoder


def size(args: Any, layers: int, dim: int, heads: int) -> None:
    """Both stacks `layers` deep and `dim` wide, feed-forward layers four times as wide, for a short training."""
    set_defaults(args, encoder_layers=layers, decoder_layers=layers, head_pace=SHORT_TRAINING_PACE)
    set_defaults(args, embed_dim=dim, embed_pace=dim**0.5, ffn_dim=4 * dim, attention_heads=heads)


@register_model_architecture("milk_transformer", "milk_transformer_small")
def milk_transformer_small(args: Any) -> None:
    """For corpora of the size of Multi30k."""
    size(args, layers=3, dim=256, heads=4)


@register_model_architecture("milk_transformer", "milk_transformer_tiny")
def milk_transformer_tiny(args: Any) -> None:
    """For the synthetic language of examples/verb_final."""
    size(args, layers=2, dim=128, heads=4)
    set_defaults(args, dropout=0.0)
