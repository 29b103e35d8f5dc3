"""The graphs of a model of either family."""

from typing import Any, Dict

from ..console.errors import UserError
from ..models.milk_rnmt import MilkRNMT
from ..models.milk_transformer import MilkTransformer
from . import rnmt_graphs, transformer_graphs
from .graph import Graph

FAMILIES = {MilkRNMT: rnmt_graphs.graphs, MilkTransformer: transformer_graphs.graphs}


def graphs(model: Any) -> Dict[str, Graph]:
    """read, query and write, with examples of a batch of two and of three source tokens read."""
    if type(model) not in FAMILIES:
        raise UserError(f"a {type(model).__name__} cannot be exported: milk_rnmt and milk_transformer can")
    return FAMILIES[type(model)](model)
