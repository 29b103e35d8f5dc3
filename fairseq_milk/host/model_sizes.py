"""A model is built before its parameters are loaded: its options must not ask for more than there are in the file."""

from typing import Any, Dict, Mapping

import torch

from .configuration import ConfigurationError

LAYERS = ("encoder_layers", "decoder_layers")
WIDTHS = ("embed_dim", "hidden_size", "energy_dim", "ffn_dim", "attention_heads", "schedule_heads")


def require_sizes(options: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """ConfigurationError for more layers than the file has parameters, or wider ones than any parameter is."""
    shapes = [value.shape for value in parameters.values() if isinstance(value, torch.Tensor)]
    widest = max((size for shape in shapes for size in shape), default=0)
    limits: Dict[str, int] = {**dict.fromkeys(LAYERS, len(shapes)), **dict.fromkeys(WIDTHS, widest)}
    for name, limit in limits.items():
        if _whole(options.get(name)) > limit:
            raise ConfigurationError(f"its {name} is {options[name]}, but its parameters are not of such a model")


def _whole(value: Any) -> int:
    """As OmegaConf would understand it, which refuses what is no number later."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
