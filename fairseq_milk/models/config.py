"""The options of the models.

Those of `milk_rnmt` are the paper's by default; docs/explanation/differences.md lists what the paper leaves open.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Dict, Optional, Tuple, Type, TypeVar

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import merge_with_parent

from ..attention import ATTENTIONS, AttentionOptions
from ..console.errors import UserError, check_numbers, require
from ..functional.product import ProductPrecision
from ..host.training_length import check_threshold

DEEPEST, WIDEST = 1000, 2**16  # largest numbers of layers and units
FLOAT32 = "float32"
PRODUCT_PRECISIONS = {FLOAT32: None, "bf16": torch.bfloat16}
# head_pace of the small models: r and g can change as much as in the paper's training (learning rates sum to 50)
SHORT_TRAINING_PACE = 20.0
WAITING, STOPPING = -8.0, -1.0  # r at the start
SLOWEST = 1e-9  # a smaller rate would be 0 in float32


Config = TypeVar("Config", bound="SimultaneousConfig")
Sizes = Tuple[int, int, int]  # sizes of queries, source states and energies


@dataclass
class SimultaneousConfig(FairseqDataclass):
    """The options that all models share: the mechanism, its schedule, and the precision of products."""

    attention: ChoiceEnum(list(ATTENTIONS)) = field(  # type: ignore[valid-type]
        default="milk", metadata={"help": "attention mechanism"}
    )
    share_all_embeddings: bool = field(
        default=False, metadata={"help": "one embedding for source, target and output layer (joined dictionary)"}
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "one embedding for target and output layer"}
    )
    noise: float = field(
        default=4.0, metadata={"help": "n, standard deviation of the noise on the monotonic energies in training"}
    )
    head_after: float = field(
        default=0.3,
        metadata={
            "help": "number of updates before the head of milk is active; below 1, a share of the training. Until then "
            "the whole source is read"
        },
    )
    noise_ramp: float = field(
        default=0.0,
        metadata={
            "help": "updates over which the noise then grows linearly to its value, or below 1 a share of the "
            "training; 0: at once"
        },
    )
    energy_bias: Optional[float] = field(
        default=None,
        metadata={
            "help": "r at the start, the bias of the monotonic energies; -8 makes the head wait, -1 stop early. By "
            "default -8 for milk and -1 for monotonic and mocha, which cannot translate from the end of the source"
        },
    )
    head_pace: float = field(
        default=1.0,
        metadata={
            "help": "how much faster than the other parameters the head's scalars r and g learn; "
            "they are stored divided by it: keep it when starting from a model that has a head"
        },
    )
    projection_pace: float = field(
        default=1.0,
        metadata={
            "help": "how much faster than the other parameters the projections of the head learn; stored as those of "
            "--head-pace. 8 lets the head become decisive in a short training"
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
        default=FLOAT32,
        metadata={
            "help": "type of the matrix products in training; bf16: bfloat16 with sums in float32, twice as fast on a "
            "processor with instructions for it. Parameters, states, softmax and schedules stay float32"
        },
    )

    @classmethod
    def read(cls: Type[Config], cfg: Any) -> Config:
        """Read from fairseq's configuration.  Options that an older checkpoint does not have get their defaults."""
        merged = merge_with_parent(cls(), cfg, remove_missing=True)
        options = cls(**{f.name: getattr(merged, f.name) for f in fields(cls) if f.name != "_name"})
        options.attention = str(options.attention)
        options.product_precision = str(options.product_precision)
        options.check()
        return options

    def products(self) -> ProductPrecision:
        return ProductPrecision(PRODUCT_PRECISIONS[self.product_precision])

    @property
    def looks_at_everything(self) -> bool:
        """Whether the attention can translate from the end of the source."""
        return ATTENTIONS[self.attention][1].looks_at_everything

    @property
    def initial_bias(self) -> float:
        """r at the start: the option, or the default of the mechanism."""
        if self.energy_bias is not None:
            return self.energy_bias
        return WAITING if self.looks_at_everything else STOPPING

    @property
    def thresholds(self) -> Dict[str, float]:
        """Numbers of updates, or shares of the length of the training."""
        return {"head_after": self.head_after if self.looks_at_everything else 0, "noise_ramp": self.noise_ramp}

    def schedule_options(self, sizes: Sizes, products: ProductPrecision) -> AttentionOptions:
        return AttentionOptions(
            *sizes,
            noise=self.noise,
            energy_bias=self.initial_bias,
            head_pace=self.head_pace,
            projection_pace=self.projection_pace,
            preserve_mass=not self.unpreserved_mass,
            exact_alignment=not self.published_alignment,
            chunk_size=self.chunk_size,
            k=self.wait_k,
            rate=self.emission_rate,
            products=products,
        )

    def check(self) -> None:
        """Raise a UserError for invalid values, before any data is read."""
        require(0 <= self.noise < float("inf"), "noise", self.noise, "must be 0 or a positive number")
        check_threshold("head_after", self.head_after)
        check_threshold("noise_ramp", self.noise_ramp)
        require(abs(self.initial_bias) < float("inf"), "energy_bias", self.energy_bias, "must be a finite number")
        for name in ("embed_pace", "head_pace", "projection_pace", "emission_rate"):
            require(0 < getattr(self, name) < float("inf"), name, getattr(self, name), "must be a positive number")
            require(getattr(self, name) >= SLOWEST, name, getattr(self, name), f"must be at least {SLOWEST}")
        require(self.chunk_size >= 1, "chunk_size", self.chunk_size, "must be at least 1")
        require(self.wait_k >= 1, "wait_k", self.wait_k, "must be at least 1")
        check_numbers({f.name: getattr(self, f.name) for f in fields(self)})

    def check_sizes(self, *names: str) -> None:
        for name in names:
            most = DEEPEST if name.endswith("layers") else WIDEST
            require(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")
            require(getattr(self, name) <= most, name, getattr(self, name), f"must be at most {most}")


@dataclass
class MilkRNMTConfig(SimultaneousConfig):
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
    output_nonlinearity: bool = field(
        default=False, metadata={"help": "h = sigmoid(o) tanh(c) as in PyTorch instead of RNMT+'s h = sigmoid(o) c"}
    )
    cell_clip: float = field(default=10.0, metadata={"help": "clip LSTM cells to +- this value; 0 does not clip"})

    def attention_options(self, products: ProductPrecision) -> AttentionOptions:
        return self.schedule_options((self.hidden_size, self.hidden_size, self.energy_dim), products)

    def check(self) -> None:
        self.check_sizes("encoder_layers", "decoder_layers", "embed_dim", "hidden_size", "energy_dim")
        require(0 <= self.dropout < 1, "dropout", self.dropout, "must be at least 0 and below 1")
        require(0 <= self.cell_clip < float("inf"), "cell_clip", self.cell_clip, "must be 0 or a positive number")
        super().check()
        if self.encoder_bidirectional and ATTENTIONS[self.attention][0].streaming:
            raise UserError(
                f"--encoder-bidirectional reads the whole source before the first word is written, so it goes with "
                f"--attention soft only, not with --attention {self.attention}"
            )


@dataclass
class MilkTransformerConfig(SimultaneousConfig):
    """The base size of Vaswani et al. (2017)."""

    encoder_layers: int = field(default=6, metadata={"help": "layers of the encoder"})
    decoder_layers: int = field(default=6, metadata={"help": "layers of the decoder"})
    embed_dim: int = field(default=512, metadata={"help": "size of embeddings and states"})
    ffn_dim: int = field(default=2048, metadata={"help": "hidden units of the feed-forward layers"})
    attention_heads: int = field(default=8, metadata={"help": "heads of every attention"})
    embed_pace: float = field(
        default=512**0.5,
        metadata={"help": "how much faster than the other parameters the embeddings learn; the root of their size"},
    )
    dropout: float = field(default=0.1, metadata={"help": "dropout of embeddings, attention and layer outputs"})
    schedule_heads: int = field(
        default=1,
        metadata={
            "help": "schedules of a learned mechanism: 1 for all heads and layers, or --attention-heads, one for each "
            "head of each layer; a token is written when all of them have stopped"
        },
    )
    schedule_layer: int = field(
        default=1,
        metadata={
            "help": "decoder layer, counted from 1, that decides if there is one schedule; the layers below it do not "
            "look at the source"
        },
    )

    def attention_options(self, products: ProductPrecision) -> AttentionOptions:
        options = self.schedule_options((self.embed_dim, self.embed_dim, self.embed_dim), products)
        return options._replace(heads=self.attention_heads, schedule_heads=self.schedule_heads)

    def check(self) -> None:
        self.check_sizes("encoder_layers", "decoder_layers", "embed_dim", "ffn_dim", "attention_heads")
        require(0 <= self.dropout < 1, "dropout", self.dropout, "must be at least 0 and below 1")
        heads, layers = self.attention_heads, self.decoder_layers
        divides = f"must be a multiple of --attention-heads, which is {heads}"
        require(self.embed_dim % heads == 0, "embed_dim", self.embed_dim, divides)
        allowed = f"must be 1 or --attention-heads, which is {heads}"
        require(self.schedule_heads in (1, heads), "schedule_heads", self.schedule_heads, allowed)
        inside = f"must be a layer of the decoder, 1 to {layers}"
        require(1 <= self.schedule_layer <= layers, "schedule_layer", self.schedule_layer, inside)
        super().check()
