"""A short run of `tests.support.fuzzing`; the long one is `scripts/faults.sh fuzz`."""

import random
import re
from pathlib import Path
from typing import Dict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import fuzzing
from tests.support.fuzzing import Kind

KINDS = ("checkpoint", "index", "data", "dictionary", "translations", "table", "sweep")
FLIPS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def kinds(folder: Path) -> Dict[str, Kind]:
    return fuzzing.kinds(folder)


@pytest.mark.parametrize("name", KINDS)
def test_a_sound_file_is_read(name: str, kinds: Dict[str, Kind], folder: Path) -> None:
    assert fuzzing.try_case(kinds[name], folder, kinds[name].sound)


@pytest.mark.parametrize("name", KINDS)
@settings(suppress_health_check=list(HealthCheck))
@given(case=st.data())
def test_a_damaged_file_is_read_or_refused(
    name: str, kinds: Dict[str, Kind], folder: Path, case: st.DataObject
) -> None:
    fuzzing.try_case(kinds[name], folder, case.draw(kinds[name].damaged))


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_does_no_harm(name: str, kinds: Dict[str, Kind], folder: Path) -> None:
    kind, draw = kinds[name], random.Random(1)
    for _ in range(FLIPS):
        fuzzing.try_case(kind, folder, fuzzing.flipped(kind.sound, draw.randrange(8 * len(kind.sound))))


def test_a_record_marked_as_a_folder_is_refused(folder: Path, kinds: Dict[str, Kind]) -> None:
    """The checksums do not cover the mark, and torch leaves the tensor of such a record uninitialised."""
    sound = kinds["checkpoint"].sound
    entries = [entry.start() for entry in re.finditer(b"PK\x01\x02", sound)]
    assert len(entries) > 10
    for entry in entries:
        content = fuzzing.flipped(sound, 8 * (entry + 38) + 4)  # external attributes, 0x10
        assert not fuzzing.try_case(kinds["checkpoint"], folder, content)


@pytest.mark.parametrize("name", ["system", "eval", "getattr"])
def test_code_in_a_checkpoint_would_be_noticed(name: str, folder: Path, kinds: Dict[str, Kind]) -> None:
    """The reader refuses it, and `watched` sees code that is run."""
    state = {**fuzzing.small_state(), "extra_state": fuzzing.Runs(name)}
    assert not fuzzing.try_case(kinds["checkpoint"], folder, fuzzing.saved(state))
    with fuzzing.watched() as events:
        if name == "eval":
            eval(f"'{fuzzing.MARK}'")
            assert events == ["exec"]
