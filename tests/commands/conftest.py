"""Every test of a command is `slow`; models that several files share are trained when a worker first needs them."""

from pathlib import Path
from typing import List

import pytest

from tests.support.tiny_translators import Plain, Translators, make_plain


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Mark the tests of this folder: pytest calls this with all that were collected."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def translators(tmp_path_factory: pytest.TempPathFactory) -> Translators:
    return Translators(tmp_path_factory.mktemp("translators"))


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return make_plain(tmp_path_factory.mktemp("plain"))
