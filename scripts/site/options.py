"""The reference of the options that the plugin adds to fairseq's commands, from the dataclasses that register them."""

from argparse import Namespace
from dataclasses import fields
from enum import Enum
from typing import Any, Iterator, List, Tuple, Type

from scripts.site.commands import cell


def groups() -> "List[Tuple[str, str, Type[Any]]]":
    """Title, when the options are there, and the dataclass that has them."""
    import fairseq_milk

    fairseq_milk.register()
    from fairseq_milk.criterions.latency_augmented import NAME, LatencyAugmentedConfig
    from fairseq_milk.generation.knobs import DecodingKnobs
    from fairseq_milk.models.config import MilkRNMTConfig, MilkTransformerConfig, SimultaneousConfig
    from fairseq_milk.optim.rnmt_adam import RNMTAdamConfig
    from fairseq_milk.optim.rnmt_plus import RNMTPlusScheduleConfig
    from fairseq_milk.scoring.scorer import SimultaneousScorerConfig
    from fairseq_milk.tasks.simultaneous_translation import SimultaneousTranslationConfig

    return [
        ("Mechanism and schedule", "`fairseq-train` with any architecture of the plugin", SimultaneousConfig),
        ("RNMT+", "`fairseq-train --arch milk_rnmt` and its sizes", MilkRNMTConfig),
        ("Transformer", "`fairseq-train --arch milk_transformer` and its sizes", MilkTransformerConfig),
        ("Objective", f"`fairseq-train --criterion {NAME}`", LatencyAugmentedConfig),
        ("Optimiser", "`fairseq-train --optimizer rnmt_adam`", RNMTAdamConfig),
        ("Learning rate", "`fairseq-train --lr-scheduler rnmt_plus`", RNMTPlusScheduleConfig),
        ("Decoding", "`fairseq-generate`, `fairseq-interactive` with the task", DecodingKnobs),
        ("Files", "`fairseq-generate --results-path` with the task", SimultaneousTranslationConfig),
        ("Scoring", "`fairseq-generate --scoring simultaneous`, the task's default", SimultaneousScorerConfig),
    ]


def options_page() -> str:
    """A table per group, and one of the architectures."""
    sections = [f"## {title}\n\n{when}.\n\n{_table(config)}" for title, when, config in groups()]
    return "\n\n".join([*sections, f"## Architectures\n\n{_architectures()}"])


def _table(config: Type[Any]) -> str:
    rows = ["| option | default | |", "|---|---|---|"]
    return "\n".join([*rows, *_rows(config)])


def _rows(config: Type[Any]) -> Iterator[str]:
    """The rows of the options that this dataclass adds to those of its parents."""
    own = config.__dict__.get("__annotations__", {})
    for option in fields(config):
        if option.name in own and "help" in option.metadata:
            name = f"`--{option.name.replace('_', '-')}`"
            kind = own[option.name]
            if isinstance(kind, type) and issubclass(kind, Enum):
                name += " " + " \\| ".join(f"`{choice.value}`" for choice in kind)
            yield f"| {name} | {_default(option.default)} | {cell(option.metadata['help'])} |"


def _default(value: Any) -> str:
    if value is None or value is False:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _architectures() -> str:
    """What each of them sets; the rest has the defaults above."""
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY

    rows = ["| `--arch` | sets |", "|---|---|"]
    for name, model in ARCH_MODEL_NAME_REGISTRY.items():
        if model.startswith("milk_"):
            chosen = Namespace()
            ARCH_CONFIG_REGISTRY[name](chosen)
            options = [f"`--{option.replace('_', '-')} {_default(value)}`" for option, value in vars(chosen).items()]
            rows.append(f"| `{name}` | {', '.join(options).replace(' True`', '`') or 'the defaults'} |")
    return "\n".join(rows)
