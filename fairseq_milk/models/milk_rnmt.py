"""`--arch milk_rnmt`: the RNMT+ translator with a choice of attention, and its named sizes."""

import os
from typing import Any, Dict, Optional, Tuple

import torch
from fairseq import file_utils
from fairseq.models import FairseqEncoderDecoderModel, register_model, register_model_architecture
from torch import Tensor, nn

from ..console.errors import UserError
from ..host.registration import register
from .config import MilkRNMTConfig
from .decoder import RNMTDecoder
from .encoder import BidirectionalRNMTEncoder, RNMTEncoder


@register_model("milk_rnmt", dataclass=MilkRNMTConfig)
class MilkRNMT(FairseqEncoderDecoderModel):
    """Encoder, attention and decoder of the paper (section 5.1)."""

    encoder: RNMTEncoder
    decoder: RNMTDecoder

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "MilkRNMT":
        options = MilkRNMTConfig.read(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if options.share_all_embeddings and source != target:
            raise UserError("--share-all-embeddings needs one dictionary: run fairseq-preprocess --joined-dictionary")
        sizes = options.embed_dim, options.embed_pace
        embedding = PacedEmbedding(target, *sizes)
        source_embedding = embedding if options.share_all_embeddings else PacedEmbedding(source, *sizes)
        encoder_class = BidirectionalRNMTEncoder if options.encoder_bidirectional else RNMTEncoder
        products = options.products()
        encoder = encoder_class(options, source, source_embedding, products)
        return cls(encoder, RNMTDecoder(options, target, embedding, products))

    def train(self, mode: bool = True) -> Any:
        """fairseq calls this before every update.  Evaluation computes its products in float32."""
        self.decoder.output.products.use(self.decoder.output.weight.device, mode)
        return super().train(mode)

    @classmethod
    def from_pretrained(
        cls, model_name_or_path: str, checkpoint_file: str = "model.pt", data_name_or_path: str = ".", **kwargs: Any
    ) -> Any:
        """fairseq's `from_pretrained`, with a sentence for what is not there."""
        register()
        folder = file_utils.load_archive_file(model_name_or_path)
        if folder is None:
            raise UserError(f"there is no folder or archive {model_name_or_path}")
        for name in checkpoint_file.split(os.pathsep):
            path = os.path.join(folder, name)
            if not os.path.isfile(path):
                raise UserError(f"there is no checkpoint {path}")
        return super().from_pretrained(folder, checkpoint_file, data_name_or_path, **kwargs)

    def load_state_dict(self, state_dict: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """fairseq's, which lists every parameter that does not fit; here a sentence names the first."""
        try:
            result = super().load_state_dict(state_dict, *args, **kwargs)
        except RuntimeError as error:
            reason = str(error).splitlines()[1:2] or [str(error)]
            raise UserError(
                f"the checkpoint does not fit the dictionaries or the size of this model: {reason[0].strip()}"
            ) from error
        for name, parameter in self.named_parameters():
            if not torch.isfinite(parameter).all():
                raise UserError(f"the parameter {name} is not finite: the training has diverged before it was saved")
        return result

    num_updates = 0

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update; the criterion's latency schedule reads it."""
        super().set_num_updates(num_updates)
        self.num_updates = num_updates

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor], prev_output_tokens: Tensor, **kwargs: Any
    ) -> Tuple[Tensor, Dict[str, Tensor]]:
        encoder_out = self.encoder(src_tokens, src_lengths)
        out: Tuple[Tensor, Dict[str, Tensor]] = self.decoder(prev_output_tokens, encoder_out=encoder_out, **kwargs)
        return out


class PacedEmbedding(nn.Embedding):
    """Uniform in +-1; the padding is zero.

    RNMT+ draws everything from +-0.04.  But the LSTM normalises the sum of its two projections, in which embeddings
    that small drown in the recurrent one: it takes five times as many updates until they are heard.

    Adam moves a parameter by at most the learning rate a step, and a rare word has few steps: embeddings are stored
    divided by `pace`, and so move `pace` times as fast (the Transformer's is the root of their size).
    """

    def __init__(self, dictionary: Any, size: int, pace: float) -> None:
        super().__init__(len(dictionary), size, padding_idx=dictionary.pad())
        self.pace = pace
        nn.init.uniform_(self.weight, -1.0 / pace, 1.0 / pace)
        nn.init.zeros_(self.weight[dictionary.pad()])

    def forward(self, tokens: Tensor) -> Tensor:
        return self.pace * super().forward(tokens)


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
