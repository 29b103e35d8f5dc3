"""A model is built before its parameters are loaded: its options must not ask for more than there are in the file."""

from typing import Any, Dict, Mapping

import torch

from .configuration import ConfigurationError

LAYERS = ("encoder_layers", "decoder_layers")
WIDTHS = ("embed_dim", "hidden_size", "energy_dim", "ffn_dim", "attention_heads", "schedule_heads")


def require_sizes(options: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """ConfigurationError for options of a model that has more layers, width or parameters than the file."""
    tensors = [value for value in parameters.values() if isinstance(value, torch.Tensor) and value.numel()]
    widest = max((size for tensor in tensors for size in tensor.shape), default=0)
    limits: Dict[str, int] = {**dict.fromkeys(LAYERS, len(tensors)), **dict.fromkeys(WIDTHS, widest)}
    for name, limit in limits.items():
        if _whole(options.get(name)) > limit:
            raise ConfigurationError(f"its {name} is {options[name]}, but its parameters are not of such a model")
    if fewest_parameters(options) > _numbers(tensors):
        raise ConfigurationError("its layers are larger than all its parameters")


def fewest_parameters(options: Mapping[str, Any]) -> int:
    """A lower bound of the parameters of a model with these options: one matrix per layer, which has at least four."""
    sizes = {name: _whole(options.get(name)) for name in (*LAYERS, *WIDTHS)}
    layers, width = sum(sizes[name] for name in LAYERS), sizes["hidden_size"] or sizes["embed_dim"]
    inside = layers * width * max(width, sizes["ffn_dim"])
    return inside + sizes["energy_dim"] * width


def _numbers(tensors: Any) -> int:
    """The number of elements in the storages of the tensors, shared ones counted once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors}.values()
    return sum(tensor.untyped_storage().nbytes() // tensor.element_size() for tensor in storages)


def _whole(value: Any) -> int:
    """The value as an integer; 0 if it is not a number, which OmegaConf refuses later."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
