"""Base class of the models of this plugin."""

import os
from types import MappingProxyType
from typing import Any, ClassVar, Dict, Mapping, Optional, Tuple, Type, TypeVar

import torch
from fairseq import file_utils
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor, nn

from ..console.errors import UserError
from ..host.registration import register
from ..host.training_length import length_of_run, thresholds_in_updates
from .config import PRODUCT_PRECISIONS, SimultaneousConfig
from .encoder import SimultaneousEncoder
from .misuse import languages_swapped, warn_of_other_task
from .simultaneous_decoder import SimultaneousDecoder
from .target import Target

Model = TypeVar("Model", bound="SimultaneousModel")


class SimultaneousModel(FairseqEncoderDecoderModel):
    """An encoder, and a decoder that has an attention (or several with one schedule) and an output layer."""

    config: ClassVar[Type[SimultaneousConfig]]
    encoder_type: ClassVar[Type[Any]]
    decoder_type: ClassVar[Type[Any]]
    target_type: ClassVar[Type[Any]]
    encoder: SimultaneousEncoder
    decoder: SimultaneousDecoder

    @classmethod
    def build_model(cls: Type[Model], cfg: Any, task: Any) -> Model:
        options = cls.config.read(cfg)
        warn_of_other_task(task, str(options.attention))
        source, target = task.source_dictionary, task.target_dictionary
        source_embedding, embedding = embeddings(options, source, target)
        products = options.products()
        encoder = cls.build_encoder(options, source, source_embedding, products)
        model = cls(encoder, cls.decoder_type(options, target, embedding, products))
        model.thresholds = options.thresholds if model.decoder.attentions[0].learned else {}
        model.set_length(length_of_run(task))
        return model

    @classmethod
    def build_encoder(cls, options: Any, *parts: Any) -> SimultaneousEncoder:
        """parts: dictionary, embedding and the precision of products."""
        encoder: SimultaneousEncoder = cls.encoder_type(options, *parts)
        return encoder

    def target(self, batch: int, room: int) -> Target:
        """New target sentences.  room: initial room for source tokens."""
        target: Target = self.target_type(self.decoder, batch, room)
        return target

    def sentence(self, room: int) -> Target:
        """The same for one sentence whose source arrives token by token."""
        return self.target(1, room)

    def train(self, mode: bool = True) -> Any:
        """Called by fairseq before every update.  In evaluation products are computed in float32 unless `decode_in`."""
        self.decoder.output.products.use(self.decoder.output.weight.device, mode)
        return super().train(mode)

    def decode_in(self, precision: str) -> None:
        """Evaluation computes its matrix products in this type from now on: float32 or bf16."""
        self.decoder.output.products.decoding = PRODUCT_PRECISIONS[precision]
        self.train(self.training)

    @classmethod
    def from_pretrained(
        cls, model_name_or_path: str, checkpoint_file: str = "model.pt", data_name_or_path: str = ".", **kwargs: Any
    ) -> Any:
        """fairseq's `from_pretrained`, with a UserError for missing files."""
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
        """fairseq's `load_state_dict`, but a UserError names the first parameter that does not fit."""
        try:
            result = super().load_state_dict(state_dict, *args, **kwargs)
        except RuntimeError as error:
            reason = (str(error).splitlines()[1:2] or [str(error)])[0].strip()
            guess = "; are source and target language swapped?" if languages_swapped(self, state_dict) else ""
            raise UserError(
                f"the checkpoint does not fit the dictionaries or the size of this model: {reason}{guess}"
            ) from error
        for name, parameter in self.named_parameters():
            if not torch.isfinite(parameter).all():
                raise UserError(f"the parameter {name} is not finite: the training diverged before it was saved")
        return result

    num_updates = 0
    thresholds: Mapping[str, float] = MappingProxyType({})  # of the head, if it is learned

    def set_length(self, updates: int) -> None:
        """Set the length of the training, of which thresholds can be shares; 0 if it is not known."""
        if self.thresholds:
            self.decoder.attentions[0].stop.set_thresholds(**thresholds_in_updates(self.thresholds, updates))

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


def set_defaults(args: Any, **values: Any) -> None:
    """The options of a named architecture, where the user does not say otherwise."""
    for name, value in values.items():
        if name not in args:  # omegaconf 2.0, of fairseq 0.12.2, has None for every attribute that is not there
            setattr(args, name, value)


class PacedEmbedding(nn.Embedding):
    """Uniform in +-1; the padding is zero.

    RNMT+ draws everything from +-0.04.  But the LSTM normalises the sum of its two projections, in which such small
    embeddings are dominated by the recurrent one: training then takes five times as many updates.

    Adam moves a parameter by at most the learning rate per step, and a rare word has few steps.  Embeddings are stored
    divided by `pace`, and so move `pace` times as fast (in a Transformer `pace` is the root of their size).
    """

    def __init__(self, dictionary: Any, size: int, pace: float) -> None:
        super().__init__(len(dictionary), size, padding_idx=dictionary.pad())
        self.pace = pace
        nn.init.uniform_(self.weight, -1.0 / pace, 1.0 / pace)
        nn.init.zeros_(self.weight[dictionary.pad()])

    def forward(self, tokens: Tensor) -> Tensor:
        return self.pace * super().forward(tokens)


def embeddings(options: Any, source: Any, target: Any) -> Tuple[PacedEmbedding, PacedEmbedding]:
    """The embeddings of source and target words; the same one with --share-all-embeddings."""
    if options.share_all_embeddings and source != target:
        raise UserError("--share-all-embeddings needs one dictionary: run fairseq-preprocess --joined-dictionary")
    sizes = options.embed_dim, options.embed_pace
    embedding = PacedEmbedding(target, *sizes)
    return embedding if options.share_all_embeddings else PacedEmbedding(source, *sizes), embedding
