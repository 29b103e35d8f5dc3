"""What a mechanism may be told."""

from typing import NamedTuple, Optional

from ..functional.product import ProductPrecision


class AttentionOptions(NamedTuple):
    """Each stop, lookback and energy takes what concerns it."""

    query_dim: int
    memory_dim: int
    energy_dim: int
    noise: float = 4.0  # n: standard deviation of the pre-sigmoid noise
    noise_ramp: int = 0  # updates over which the noise grows to n
    energy_bias: float = -1.0  # r at the start
    head_pace: float = 1.0  # how much faster than the other parameters r and g learn
    preserve_mass: bool = True
    exact_alignment: bool = True  # False: the published closed form
    chunk_size: int = 8  # w of MoChA
    k: int = 6  # of wait-k
    rate: float = 1.0  # emission rate of wait-k
    products: Optional[ProductPrecision] = None  # type of the matrix products
    heads: Optional[int] = None  # of scaled dot products; None: additive energies, without a head axis
    schedule_heads: int = 1  # how many of them have a schedule of their own: one, or all
