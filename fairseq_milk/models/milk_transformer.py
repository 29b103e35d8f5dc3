"""`--arch milk_transformer`: a causal Transformer with a choice of attention to the source, and its named sizes."""

from typing import Any

from fairseq.models import register_model, register_model_architecture

from .base import SimultaneousModel, embeddings
from .config import MilkTransformerConfig
from .misuse import warn_of_other_task
from .transformer_decoder import TransformerDecoder
from .transformer_encoder import TransformerEncoder
from .transformer_target import TransformerTarget


@register_model("milk_transformer", dataclass=MilkTransformerConfig)
class MilkTransformer(SimultaneousModel):
    """The schedules of the paper in the model of Vaswani et al. (2017)."""

    encoder: TransformerEncoder
    decoder: TransformerDecoder

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "MilkTransformer":
        options = MilkTransformerConfig.read(cfg)
        warn_of_other_task(task, options.attention)
        source, target = task.source_dictionary, task.target_dictionary
        source_embedding, embedding = embeddings(options, source, target)
        products = options.products()
        encoder = TransformerEncoder(options, source, source_embedding, products)
        return cls(encoder, TransformerDecoder(options, target, embedding, products))

    def target(self, batch: int, room: int) -> TransformerTarget:
        return TransformerTarget(self.decoder, batch, room)


def size(args: Any, layers: int, dim: int, heads: int) -> None:
    """Both stacks `layers` deep and `dim` wide, the feed-forward four times that, unless the user says otherwise."""
    defaults = {
        "encoder_layers": layers,
        "decoder_layers": layers,
        "embed_dim": dim,
        "ffn_dim": 4 * dim,
        "attention_heads": heads,
        "embed_pace": dim**0.5,
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
