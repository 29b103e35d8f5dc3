"""Models that several files of commands share, trained when the first test of a worker asks for them."""

import pytest

from tests.support.tiny_translators import Plain, Translators, make_plain


@pytest.fixture(scope="session")
def translators(tmp_path_factory: pytest.TempPathFactory) -> Translators:
    return Translators(tmp_path_factory.mktemp("translators"))


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return make_plain(tmp_path_factory.mktemp("plain"))
