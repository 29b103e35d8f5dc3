"""The number of operations per target step in training: on a GPU launching them limits the speed at any batch size."""

import pytest

from benchmarks.operations import MOST, of_a_step
from tests.support import tiny_models as tiny


@pytest.mark.parametrize("pace", [1.0, 8.0], ids=["no pace", "paced head"])
@pytest.mark.parametrize("attention", tiny.FIVE)
def test_a_target_step_takes_few_operations(attention: str, pace: float) -> None:
    step = of_a_step(attention, head_pace=pace, projection_pace=pace)
    assert 40 < sum(step.values()) <= MOST[attention], step
