"""Tiny models and batches in memory, for tests that need no data directory."""

import random
from types import SimpleNamespace
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from fairseq.dataclass.utils import merge_with_parent
from omegaconf import OmegaConf
from torch import Tensor

import fairseq_milk
from fairseq_milk.criterions import LatencyAugmentedCriterion
from fairseq_milk.models.config import MilkRNMTConfig, MilkTransformerConfig
from fairseq_milk.models.milk_rnmt import MilkRNMT
from fairseq_milk.models.milk_transformer import MilkTransformer
from tests.support.sixth_mechanism import mechanism

fairseq_milk.register()  # another test may have imported it before fairseq

FIVE = ("soft", "waitk", "monotonic", "mocha", "milk")
STREAMING = FIVE[1:]
LEARNED = FIVE[2:]


def dictionary(words: int) -> Dictionary:
    result = Dictionary()
    for word in range(words):
        result.add_symbol(f"w{word}")
    return result


def task(words: int = 12) -> Any:
    """The part of a task that a model and a criterion use."""
    words_of = dictionary(words)
    return SimpleNamespace(source_dictionary=words_of, target_dictionary=words_of)


def options(**changes: Any) -> Any:
    """The configuration of a small model in the form that fairseq passes."""
    small: Dict[str, Any] = dict(encoder_layers=1, decoder_layers=1, embed_dim=6, hidden_size=8, energy_dim=5)
    small.update(dropout=0.0, noise=0.0, energy_bias=0.0, head_after=0, wait_k=2, chunk_size=2)
    small.update(changes)
    root = OmegaConf.create({"model": small})
    return merge_with_parent(MilkRNMTConfig(), root.model)


def model(words: int = 12, spread: float = 1.0, **changes: Any) -> MilkRNMT:
    """A small model.

    spread: the standard deviation of its weights, large enough that the schedule depends on the source; 0 keeps the
    initialisation of RNMT+.
    """
    result = MilkRNMT.build_model(options(**changes), task(words))
    if spread:
        for name, p in result.named_parameters():
            if "weight" in name or "w_" in name or name.endswith(".g"):
                torch.nn.init.normal_(p, std=spread)
    return result


def transformer(words: int = 12, spread: float = 0.7, **changes: Any) -> MilkTransformer:
    """A small Transformer, otherwise as `model`."""
    small: Dict[str, Any] = dict(encoder_layers=2, decoder_layers=2, embed_dim=8, ffn_dim=12, attention_heads=2)
    small.update(dropout=0.0, noise=0.0, energy_bias=0.0, head_after=0, wait_k=2, chunk_size=2, embed_pace=1.0)
    small.update(changes)
    root = OmegaConf.create({"model": small})
    result = MilkTransformer.build_model(merge_with_parent(MilkTransformerConfig(), root.model), task(words))
    if spread:
        for p in result.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=spread)
    return result


class Kind(NamedTuple):
    """A small model of either family."""

    attention: str
    heads: int = 0  # of every attention of the Transformer; 0: RNMT+
    schedules: int = 1  # of each of its layers
    decides: int = 1  # its first layer that looks at the source

    def build(self, **changes: Any) -> Any:
        with mechanism(self.attention) as name:
            if not self.heads:
                return model(attention=name, **changes)
            heads = dict(attention_heads=self.heads, schedule_heads=self.schedules, schedule_layer=self.decides)
            return transformer(attention=name, **heads, **changes)

    def __str__(self) -> str:
        return "-".join(map(str, self if self.heads else self[:1]))


ONE_SCHEDULE = [Kind(name, heads=2) for name in FIVE]
SEVERAL_SCHEDULES = [Kind(name, heads=2, schedules=2) for name in LEARNED]
TRANSFORMERS = [*ONE_SCHEDULE, *SEVERAL_SCHEDULES, Kind("milk", heads=2, decides=2)]
BOTH_FAMILIES = [*map(Kind, FIVE), *TRANSFORMERS]


def criterion(sentence_avg: bool = False, label_smoothing: float = 0.1, **changes: Any) -> LatencyAugmentedCriterion:
    return LatencyAugmentedCriterion(task(), sentence_avg, label_smoothing, **changes)


class Pair(NamedTuple):
    source: List[int]  # without EOS
    target: List[int]


def pairs(count: int, words: int = 12, shortest: int = 1, longest: int = 6, seed: int = 0) -> List[Pair]:
    draw = random.Random(seed)

    def sentence() -> List[int]:
        return [draw.randrange(4, 4 + words) for _ in range(draw.randint(shortest, longest))]

    return [Pair(sentence(), sentence()) for _ in range(count)]


def batch(pairs_: Sequence[Pair], left_pad_source: bool = False, pad_to: Optional[int] = None) -> Dict[str, Any]:
    """As fairseq's LanguagePairDataset collates it."""
    pad, eos = Dictionary().pad(), Dictionary().eos()

    def rows(sentences: Sequence[List[int]], left: bool = False, first: bool = False) -> Tensor:
        tokens = [torch.tensor([eos, *s] if first else [*s, eos]) for s in sentences]
        return collate_tokens(tokens, pad, left_pad=left, pad_to_length=pad_to)

    target = rows([p.target for p in pairs_])
    net_input = {
        "src_tokens": rows([p.source for p in pairs_], left_pad_source),
        "src_lengths": torch.tensor([len(p.source) + 1 for p in pairs_]),
        "prev_output_tokens": rows([p.target for p in pairs_], first=True),
    }
    ntokens = int(target.ne(pad).sum())
    return {"id": torch.arange(len(pairs_)), "net_input": net_input, "target": target, "ntokens": ntokens}


def delays(alpha: Tensor) -> Tensor:
    """g_i of a hard schedule.  (B, I, J) -> (B, I)."""
    assert bool(((alpha == 0) | (alpha == 1)).all()) and bool((alpha.sum(-1) == 1).all()), "not a hard schedule"
    return alpha.argmax(-1) + 1


def gradients(module: torch.nn.Module) -> Dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def overfit(
    model_: MilkRNMT, criterion_: LatencyAugmentedCriterion, sample: Dict[str, Any], updates: int, lr: float
) -> Tuple[float, Dict[str, Any]]:
    """The NLL per token in nats and the log of the same batch in evaluation, after some updates of Adam."""
    optimizer = torch.optim.Adam(model_.parameters(), lr=lr)
    model_.train()
    for update in range(updates):
        model_.set_num_updates(update)
        loss, sample_size, _ = criterion_(model_, sample)
        optimizer.zero_grad()
        (loss / sample_size).backward()
        optimizer.step()
    model_.eval()
    with torch.no_grad():
        log = criterion_(model_, sample)[2]
    return float(log["nll_loss"]) / sample["ntokens"], log
