"""Reproducible tests: fixed seeds, one thread, and no deadlines in hypothesis."""

import os
import random

import pytest
import torch
from hypothesis import settings

settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=10000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    random.seed(1)
    torch.manual_seed(1)
