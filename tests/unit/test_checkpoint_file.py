"""Archives that zipfile, which verifies checkpoints, and torch, which loads them, would read differently."""

import io
import struct
import zipfile
from typing import Any

import pytest
import torch

from fairseq_milk.host.checkpoint_file import END, LOCATOR, load_data, verify_checksums


def saved(name: str, size: int = 3) -> bytes:
    file = io.BytesIO()
    torch.save({"name": name, "numbers": torch.zeros(size)}, file)
    return file.getvalue()


def compressed(content: bytes) -> bytes:
    """The records compressed, in an archive that ends like torch's."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as other:
        for record in archive.infolist():
            other.writestr(record.filename, archive.read(record), zipfile.ZIP_DEFLATED)
    content = file.getvalue()
    end = len(content) - END.size
    _, size, offset = END.unpack_from(content, end)
    records = struct.unpack_from("<H", content, end + 10)[0]
    end64 = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, records, records, size, offset)
    return content[:end] + end64 + struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1) + content[end:]


def two_faced(read: bytes, verified: bytes) -> bytes:
    """The second archive after the first; its locator, which torch follows, points to the end of the first."""
    content = bytearray(read + verified)
    end64 = read.rindex(b"PK\x06\x06")
    struct.pack_into("<Q", content, len(content) - END.size - LOCATOR.size + 8, end64)
    return bytes(content)


def test_what_torch_writes_is_verified() -> None:
    for size in (0, 3, 10_000):
        verify_checksums(saved("good", size))


@pytest.mark.parametrize("read", [saved("evil"), compressed(saved("evil", 100_000))], ids=["stored", "compressed"])
def test_another_directory_for_torch_is_refused(read: bytes) -> None:
    content = two_faced(read, saved("good"))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None and b"good" in archive.read(archive.namelist()[0])
    assert load_data(content)["name"] == "evil", "no longer read in two ways"
    with pytest.raises(ValueError, match="its directory is not where torch writes it"):
        verify_checksums(content)


def at(place: int, change: Any) -> bytes:
    """A saved file with a byte changed, counted from the end, or with bytes appended."""
    content = bytearray(saved("good"))
    if isinstance(change, bytes):
        return bytes(content) + change
    content[place] ^= change
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        saved("first") + saved("good"),
        at(0, b"\0"),
        at(-6, 1),  # the offset of the directory
        at(-10, 1),  # its size
        at(-END.size - 12, 1),  # the place of the larger end
        at(-END.size - LOCATOR.size - 8, 1),  # the offset in it
        at(-END.size - LOCATOR.size, 1),  # the marker of the locator
    ],
)
def test_archives_that_end_otherwise_are_refused(content: bytes) -> None:
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        verify_checksums(content)
