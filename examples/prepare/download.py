"""Downloads archives, or links those of a folder; resumes interrupted downloads and verifies digests."""

import hashlib
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any, Optional, Sequence

from examples.prepare.recipe import Archive
from examples.prepare.steps import Progress
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.progress import Line

WAITS = (1, 5, 20, 60)  # seconds before the next try after a try without progress
TIMEOUT = 60  # seconds without data
BLOCK = 1 << 18
MOST = 1 << 28  # largest number of bytes of an archive of unknown size


def fetch(archive: Archive, base: str, folder: Path, line: Line, waits: Sequence[float] = WAITS) -> Path:
    """The path of the verified archive in `folder`.  base: a web address, file://... or a folder to link files of."""
    target = folder / archive.path
    if target.exists():
        _verify_or(archive, target, line, "remove it and run this again")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    local = local_folder(base)
    if local is not None:
        source = local.resolve() / archive.path
        if not source.is_file():
            raise UserError(f"--base-url {base}: there is no file {archive.path} in it")
        verify(archive, source, line)
        if target.is_symlink():  # to a file that no longer exists
            target.unlink()
        target.symlink_to(source)
        return target
    partial = target.with_name(target.name + ".partial")
    download(f"{base.rstrip('/')}/{archive.path}", partial, archive.size, line, waits)
    try:
        _verify_or(archive, partial, line, "the download was removed")
    except UserError:
        partial.unlink()
        raise
    os.replace(partial, target)
    return target


def _verify_or(archive: Archive, path: Path, line: Line, advice: str) -> None:
    try:
        verify(archive, path, line)
    except UserError as error:
        raise UserError(f"{error}; {advice}") from None


def local_folder(base: str) -> Optional[Path]:
    """The folder that `base` names; None for a web address."""
    address = urllib.parse.urlsplit(base)
    if address.scheme in ("http", "https"):
        return None
    if address.scheme == "file":
        return Path(urllib.request.url2pathname(address.path))
    if "://" in base:
        raise UserError(f"--base-url {base} must begin with http://, https:// or file://, or be a folder")
    return Path(base)


def download(url: str, partial: Path, size: Optional[int], line: Line, waits: Sequence[float]) -> None:
    """Append to `partial` until the file is complete; UserError after too many tries without progress."""
    failures, most = 0, _size(partial)
    while True:
        problem = _try(url, partial, size, line)
        if problem is None:
            return
        failures = 0 if _size(partial) > most else failures + 1
        most = max(most, _size(partial))
        if failures == len(waits):
            raise UserError(f"{url}: {problem}; run this again to resume the download ({partial})")
        line.say(f"{url}: {problem}; trying again in {waits[failures]} s")
        time.sleep(waits[failures])


def _try(url: str, partial: Path, size: Optional[int], line: Line) -> Optional[str]:
    """One try: None if the file is complete, else the problem."""
    have = _size(partial)
    if size is not None and have == size:
        return None
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
            total = _total(response)
            if size is not None and total not in (None, size):
                raise UserError(f"{url} has {total} bytes and not the {size} of the public release")
            if not _append(response, partial, MOST if size is None else size, Progress(line, partial.stem, total or 0)):
                partial.unlink()
                limit = f"the {size} of the public release" if size is not None else f"{MOST}, the limit"
                raise UserError(f"{url} sends more bytes than {limit}; the download was removed")
        if total is not None and _size(partial) != total:
            return f"the connection ended after {_size(partial)} of {total} bytes"
        return None
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the range is invalid: `partial` is not the beginning of this file
            partial.unlink()
        elif error.code < 500:
            raise UserError(f"{url}: {error.code} {error.reason}; --base-url gives another address") from None
        return f"{error.code} {error.reason}"
    except (OSError, HTTPException) as error:
        return str(getattr(error, "reason", error)) or type(error).__name__


def _total(response: Any) -> Optional[int]:
    """The length of the whole file, None if the server does not send it."""
    span = re.fullmatch(r"bytes \d+-\d+/(\d+)", response.headers.get("Content-Range", ""))
    length = span.group(1) if span else response.headers.get("Content-Length")
    return None if length is None else int(length)


def _append(response: Any, partial: Path, limit: int, progress: Progress) -> bool:
    """Write the response: the requested rest (206) or the whole file (200).

    Returns False if the file would have more than `limit` bytes, which are never written.
    """
    goes_on = response.status == 206
    if goes_on:
        progress.start_at(_size(partial))
    with open(partial, "ab" if goes_on else "wb") as file:
        while True:
            block = response.read(BLOCK)
            if not block:
                return True
            if file.tell() + len(block) > limit:
                return False
            file.write(block)
            progress.add(len(block))


def verify(archive: Archive, path: Path, line: Line) -> None:
    """Raise a UserError unless size and digest are those of the public release.

    For an archive with an MD5 digest (its recipe says why) the SHA-256 is printed.
    """
    if archive.size is not None and _size(path) != archive.size:
        raise UserError(f"{path} has {_size(path)} bytes and not the {archive.size} of the public release")
    if not archive.digest:
        return
    algorithm, _, expected = archive.digest.partition(":")
    hashes = {name: hashlib.new(name) for name in (algorithm, "sha256")}
    progress = Progress(line, f"verifying {path.name}", _size(path))
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            for found in hashes.values():
                found.update(block)
            progress.add(len(block))
    digest = hashes[algorithm].hexdigest()
    if digest != expected:
        raise UserError(f"{path} is not the file of the public release: its {algorithm} is {digest}")
    if algorithm != "sha256":
        line.say(f"{archive.path}: {algorithm} as published; sha256 {hashes['sha256'].hexdigest()}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
