"""Downloads of examples/prepare: from a server that breaks off, from a folder, and files other than the release."""

import hashlib
import io
from pathlib import Path

import pytest

from examples.prepare.download import fetch
from examples.prepare.recipe import Archive
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.progress import Line
from tests.support.stand_in_corpora import serve

DATA = bytes(range(256)) * 20  # 5,120 bytes
ARCHIVE = Archive("wmt13/test.tgz", len(DATA), f"sha256:{hashlib.sha256(DATA).hexdigest()}")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with one archive."""
    (tmp_path / "mirror" / "wmt13").mkdir(parents=True)
    (tmp_path / "mirror" / ARCHIVE.path).write_bytes(DATA)
    return tmp_path / "mirror"


def get(base: str, folder: Path, archive: Archive = ARCHIVE) -> Path:
    return fetch(archive, base, folder, Line(io.StringIO()), waits=(0, 0, 0))


def partial_of(folder: Path) -> Path:
    return folder / (ARCHIVE.path + ".partial")


def test_a_download_that_breaks_off_goes_on_where_it_was(place: Path, tmp_path: Path) -> None:
    with serve(place, 1000, 1500) as server:
        path = get(server.url, tmp_path / "got")
    assert path.read_bytes() == DATA and not partial_of(tmp_path / "got").exists()
    assert server.ranges == ["", "bytes=1000-", "bytes=2500-"]


def test_a_process_that_was_killed_goes_on_too(place: Path, tmp_path: Path) -> None:
    partial_of(tmp_path).parent.mkdir()
    partial_of(tmp_path).write_bytes(DATA[:700])
    with serve(place) as server:
        assert get(server.url, tmp_path).read_bytes() == DATA
        get(server.url, tmp_path)
    assert server.ranges == ["bytes=700-"]


def test_a_server_without_ranges_starts_over(place: Path, tmp_path: Path) -> None:
    with serve(place, 1000, ignores_ranges=True) as server:
        assert get(server.url, tmp_path).read_bytes() == DATA
    assert len(server.ranges) == 2


def test_a_download_fails_if_the_server_sends_nothing_more(place: Path, tmp_path: Path) -> None:
    with serve(place, 1000, *[0] * 20) as server, pytest.raises(UserError, match="1000 of 5120 bytes; run this again"):
        get(server.url, tmp_path)
    assert partial_of(tmp_path).read_bytes() == DATA[:1000]
    with pytest.raises(UserError, match="run this again"):
        get("http://127.0.0.1:1", tmp_path)  # no server is listening there


@pytest.mark.parametrize("size", [ARCHIVE.size, None])
def test_what_is_not_the_beginning_of_the_file_is_thrown_away(size: int, place: Path, tmp_path: Path) -> None:
    """Too many bytes are found by the server's answer (416), wrong bytes by the digest."""
    partial_of(tmp_path).parent.mkdir()
    partial_of(tmp_path).write_bytes(b"x" * 6000)
    with serve(place) as server:
        assert get(server.url, tmp_path, ARCHIVE._replace(size=size)).read_bytes() == DATA
    partial_of(tmp_path).write_bytes(b"x" * 100)
    (tmp_path / ARCHIVE.path).unlink()
    with serve(place) as server, pytest.raises(UserError, match="sha256 is .* the download was removed"):
        get(server.url, tmp_path, ARCHIVE._replace(size=size))
    assert not partial_of(tmp_path).exists()


def test_another_file_than_the_release_is_refused_at_once(place: Path, tmp_path: Path) -> None:
    with serve(place) as server:
        with pytest.raises(UserError, match="has 5120 bytes and not the 5119 of the public release$"):
            get(server.url, tmp_path, ARCHIVE._replace(size=5119))
        with pytest.raises(UserError, match="404 .*--base-url"):
            get(server.url, tmp_path, ARCHIVE._replace(path="wmt13/none.tgz"))


def test_a_folder_is_linked(place: Path, tmp_path: Path) -> None:
    for base, folder in ((str(place), tmp_path / "a"), (place.as_uri(), tmp_path / "b")):
        assert get(base, folder).is_symlink() and (folder / ARCHIVE.path).read_bytes() == DATA
    with pytest.raises(UserError, match="there is no file none.gz"):
        get(str(place), tmp_path / "c", Archive("none.gz"))
    with pytest.raises(UserError, match="md5 is"):
        get(str(place), tmp_path / "c", ARCHIVE._replace(digest="md5:0"))
    with pytest.raises(UserError, match="must begin with http"):
        get("ftp://127.0.0.1", tmp_path / "c")


@pytest.mark.parametrize("size", [ARCHIVE.size, None])
@pytest.mark.parametrize("begun", [0, 700])
def test_a_server_that_sends_without_end_is_stopped(
    size: int, begun: int, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("examples.prepare.download.MOST", 100_000)
    if begun:
        partial_of(tmp_path).parent.mkdir()
        partial_of(tmp_path).write_bytes(DATA[:begun])
    expected = "more bytes than the 5120 of the public release" if size else "more bytes than 100000, the limit"
    with serve(place, endless=True) as server, pytest.raises(UserError, match=f"{expected}; the download was removed"):
        get(server.url, tmp_path, ARCHIVE._replace(size=size))
    assert not partial_of(tmp_path).exists() and not (tmp_path / ARCHIVE.path).exists()


@pytest.mark.parametrize("found", [b"x" + DATA[1:], DATA[:-1], DATA + b"x"])
def test_what_is_there_already_is_verified(found: bytes, place: Path, tmp_path: Path) -> None:
    (tmp_path / "wmt13").mkdir()
    (tmp_path / ARCHIVE.path).write_bytes(found)
    for archive in (ARCHIVE, ARCHIVE._replace(size=None)):
        with pytest.raises(UserError, match="of the public release.*; remove it and run this again"):
            get(str(place), tmp_path, archive)
    assert (tmp_path / ARCHIVE.path).read_bytes() == found  # it may be the user's file: nothing is removed


def test_an_archive_known_by_md5_says_its_sha256(place: Path, tmp_path: Path) -> None:
    said = io.StringIO()
    known = ARCHIVE._replace(digest=f"md5:{hashlib.md5(DATA).hexdigest()}")
    fetch(known, str(place), tmp_path, Line(said))
    assert f"wmt13/test.tgz: md5 as published; sha256 {hashlib.sha256(DATA).hexdigest()}" in said.getvalue()
