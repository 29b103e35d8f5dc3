"""The options of `milk_rnmt`.  The defaults are the paper's; the README lists those that the paper does not fix."""

from dataclasses import dataclass, field, fields
from typing import Any

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import merge_with_parent

from ..attention import ATTENTIONS, AttentionOptions
from ..console.errors import UserError, check_numbers, require
from ..functional.product import ProductPrecision

DEEPEST, WIDEST = 1000, 2**16  # no more layers and units than any memory holds
PRODUCT_PRECISIONS = {"float32": None, "bf16": torch.bfloat16}
SLOWEST = 1e-9  # a rate below it would be 0 in float32


@dataclass
class MilkRNMTConfig(FairseqDataclass):
    attention: ChoiceEnum(list(ATTENTIONS)) = field(  # type: ignore[valid-type]
        default="milk", metadata={"help": "attention mechanism"}
    )
    encoder_layers: int = field(default=6, metadata={"help": "LSTM layers of the encoder"})
    decoder_layers: int = field(default=8, metadata={"help": "LSTM layers of the decoder"})
    embed_dim: int = field(default=512, metadata={"help": "size of the word embeddings"})
    embed_pace: float = field(
        default=1.0,
        metadata={"help": "how much faster than the other parameters the embeddings learn; 16 suits a small corpus"},
    )
    hidden_size: int = field(default=512, metadata={"help": "units of each LSTM layer"})
    energy_dim: int = field(default=512, metadata={"help": "hidden units of the attention energies"})
    dropout: float = field(
        default=0.2, metadata={"help": "dropout of embeddings and LSTM outputs (never of states or the context)"}
    )
    encoder_bidirectional: bool = field(
        default=False, metadata={"help": "bidirectional encoder; reads the whole source, so soft attention only"}
    )
    share_all_embeddings: bool = field(
        default=False, metadata={"help": "one embedding for source, target and output layer (joined dictionary)"}
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "one embedding for target and output layer"}
    )
    output_nonlinearity: bool = field(
        default=False, metadata={"help": "h = sigmoid(o) tanh(c) as in PyTorch instead of RNMT+'s h = sigmoid(o) c"}
    )
    cell_clip: float = field(default=10.0, metadata={"help": "clip LSTM cells to +- this value; 0 does not clip"})
    noise: float = field(
        default=4.0, metadata={"help": "n, standard deviation of the noise on the monotonic energies in training"}
    )
    noise_ramp: int = field(
        default=0, metadata={"help": "updates over which the noise grows linearly to its value; 0: at once"}
    )
    energy_bias: float = field(
        default=-1.0, metadata={"help": "r at the start, the bias of the monotonic energies: low makes the head wait"}
    )
    head_pace: float = field(
        default=1.0,
        metadata={
            "help": "how much faster than the other parameters the head's scalars r and g learn; "
            "they are stored divided by it: keep it when starting from a model that has a head"
        },
    )
    unpreserved_mass: bool = field(
        default=False, metadata={"help": "do not stop the head at the last source token (paper, table 3)"}
    )
    published_alignment: bool = field(
        default=False, metadata={"help": "alpha by the published closed form, which loses mass; for replication"}
    )
    chunk_size: int = field(default=8, metadata={"help": "tokens that MoChA's soft head sees"})
    wait_k: int = field(default=6, metadata={"help": "source tokens that wait-k reads first"})
    emission_rate: float = field(default=1.0, metadata={"help": "target tokens that wait-k writes per source token"})

    product_precision: ChoiceEnum(list(PRODUCT_PRECISIONS)) = field(  # type: ignore[valid-type]
        default="float32",
        metadata={
            "help": "type of the matrix products in training; bf16: bfloat16 with sums in float32, twice as fast on a "
            "processor with instructions for it. Parameters, states, softmax and schedules stay float32"
        },
    )

    @classmethod
    def read(cls, cfg: Any) -> "MilkRNMTConfig":
        """From fairseq's configuration.  An option newer than the checkpoint it comes from gets its default."""
        merged = merge_with_parent(cls(), cfg, remove_missing=True)
        options = cls(**{f.name: getattr(merged, f.name) for f in fields(cls) if f.name != "_name"})
        options.attention = str(options.attention)
        options.product_precision = str(options.product_precision)
        options.check()
        return options

    def products(self) -> ProductPrecision:
        return ProductPrecision(PRODUCT_PRECISIONS[self.product_precision])

    def attention_options(self, products: ProductPrecision) -> AttentionOptions:
        return AttentionOptions(
            query_dim=self.hidden_size,
            memory_dim=self.hidden_size,
            energy_dim=self.energy_dim,
            noise=self.noise,
            noise_ramp=self.noise_ramp,
            energy_bias=self.energy_bias,
            head_pace=self.head_pace,
            preserve_mass=not self.unpreserved_mass,
            exact_alignment=not self.published_alignment,
            chunk_size=self.chunk_size,
            k=self.wait_k,
            rate=self.emission_rate,
            products=products,
        )

    def check(self) -> None:
        """Refuse what cannot work, before any data is read."""
        for name in ("encoder_layers", "decoder_layers", "embed_dim", "hidden_size", "energy_dim"):
            most = DEEPEST if name.endswith("layers") else WIDEST
            require(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")
            require(getattr(self, name) <= most, name, getattr(self, name), f"must be at most {most}")
        require(0 <= self.dropout < 1, "dropout", self.dropout, "must be at least 0 and below 1")
        require(0 <= self.cell_clip < float("inf"), "cell_clip", self.cell_clip, "must be 0 or a positive number")
        require(0 <= self.noise < float("inf"), "noise", self.noise, "must be 0 or a positive number")
        require(self.noise_ramp >= 0, "noise_ramp", self.noise_ramp, "must be 0 or a number of updates")
        require(abs(self.energy_bias) < float("inf"), "energy_bias", self.energy_bias, "must be a finite number")
        for name in ("embed_pace", "head_pace", "emission_rate"):
            require(0 < getattr(self, name) < float("inf"), name, getattr(self, name), "must be a positive number")
            require(getattr(self, name) >= SLOWEST, name, getattr(self, name), f"must be at least {SLOWEST}")
        require(self.chunk_size >= 1, "chunk_size", self.chunk_size, "must be at least 1")
        require(self.wait_k >= 1, "wait_k", self.wait_k, "must be at least 1")
        check_numbers({f.name: getattr(self, f.name) for f in fields(self)})
        if self.encoder_bidirectional and self.attention != "soft":
            raise UserError(
                f"--encoder-bidirectional reads the whole source before the first word is written, so it goes with "
                f"--attention soft only, not with --attention {self.attention}"
            )
