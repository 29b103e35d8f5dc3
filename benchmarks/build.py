"""Models, batches and training steps of a given size, in memory."""

from types import SimpleNamespace
from typing import Any, Callable, Dict, NamedTuple, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.utils import merge_with_parent
from omegaconf import OmegaConf

from fairseq_milk.criterions import LatencyAugmentedCriterion
from fairseq_milk.models.config import MilkRNMTConfig
from fairseq_milk.models.milk_rnmt import MilkRNMT


class Shape(NamedTuple):
    """B sentences of J source and I = J target tokens; the model's layers are those of encoder and decoder each."""

    B: int
    J: int
    words: int = 8000
    layers: int = 2
    hidden: int = 256


def task(words: int) -> Any:
    """The part of a task that a model and a criterion use."""
    dictionary = Dictionary()
    for word in range(words - len(dictionary)):
        dictionary.add_symbol(f"w{word}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


def build_model(attention: str, shape: Shape, **changes: Any) -> MilkRNMT:
    torch.manual_seed(1)
    options = {
        "attention": attention,
        "encoder_layers": shape.layers,
        "decoder_layers": shape.layers,
        "embed_dim": shape.hidden,
        "hidden_size": shape.hidden,
        "energy_dim": shape.hidden,
        **changes,
    }
    cfg = merge_with_parent(MilkRNMTConfig(), OmegaConf.create({"model": options}).model)
    return MilkRNMT.build_model(cfg, task(shape.words))


def build_criterion(latency_weight: float = 0.1) -> LatencyAugmentedCriterion:
    return LatencyAugmentedCriterion(task(8), False, 0.1, latency_weight=latency_weight)


def build_batch(shape: Shape) -> Dict[str, Any]:
    """As fairseq collates it, every sentence J tokens long, EOS included."""
    generator = torch.Generator().manual_seed(1)
    eos = Dictionary().eos()

    def tokens() -> torch.Tensor:
        rows = torch.randint(Dictionary().nspecial, shape.words, (shape.B, shape.J), generator=generator)
        rows[:, -1] = eos
        return rows

    target = tokens()
    net_input = {
        "src_tokens": tokens(),
        "src_lengths": torch.full((shape.B,), shape.J),
        "prev_output_tokens": target.roll(1, dims=1),
    }
    return {"id": torch.arange(shape.B), "net_input": net_input, "target": target, "ntokens": target.numel()}


def training_step(attention: str, shape: Shape, model: Optional[MilkRNMT] = None) -> Callable[[], None]:
    """Forward, loss and backward of one batch; not the optimiser, which is the same for every attention."""
    model = model or build_model(attention, shape)
    model.train()
    criterion, sample = build_criterion(), build_batch(shape)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        criterion(model, sample)[0].backward()

    return step
