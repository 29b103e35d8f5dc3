"""The options of a mechanism."""

from typing import NamedTuple, Optional

from ..functional.product import ProductPrecision


class AttentionOptions(NamedTuple):
    """Options of stops, lookbacks and energies; each uses its own."""

    query_dim: int
    memory_dim: int
    energy_dim: int
    noise: float = 4.0  # n: standard deviation of the pre-sigmoid noise
    energy_bias: float = -1.0  # initial r
    head_pace: float = 1.0  # how much faster than the other parameters r and g learn
    projection_pace: float = 1.0  # the same for the projections of the monotonic energies
    preserve_mass: bool = True
    exact_alignment: bool = True  # False: the published closed form
    chunk_size: int = 8  # w of MoChA
    k: int = 6  # of wait-k
    rate: float = 1.0  # emission rate of wait-k
    products: Optional[ProductPrecision] = None  # type of the matrix products
    heads: Optional[int] = None  # heads of scaled dot products; None: additive energies, without a head axis
    schedule_heads: int = 1  # number of schedules: one for all heads, or one per head
