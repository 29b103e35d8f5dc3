"""The number of operations per target step in training: on a GPU launching them limits the speed at any batch size."""

import pytest

from benchmarks.operations import MOST, of_a_step
from tests.support import tiny_models as tiny


@pytest.mark.parametrize("attention", tiny.FIVE)
def test_a_target_step_takes_few_operations(attention: str) -> None:
    step = of_a_step(attention)
    assert 40 < sum(step.values()) <= MOST[attention], step
