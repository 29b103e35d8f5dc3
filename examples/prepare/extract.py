"""Extracts text files from archives, one sentence per line, and checks that they are complete."""

import gzip
import html
import re
import tarfile
import zlib
from itertools import islice
from pathlib import Path
from typing import IO, Dict, Iterable, Iterator, Mapping, NamedTuple, Optional, Tuple

from examples.prepare.recipe import Bitext
from fairseq_milk.console.errors import UserError

INVALID = 1e-3  # largest share of lines that are not UTF-8; cleaning drops them
SEGMENT = re.compile(rb"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
MARKED_UP = ".sgm"  # <seg id="1">...</seg>, with entities
LONGEST = 1 << 20  # largest number of bytes in a line; the corpora have at most a few thousand
MOST_MARKED_UP = 1 << 26  # largest number of bytes in a marked-up file; test sets have less than one million
DAMAGE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)


class Text(NamedTuple):
    """The number of lines read, and of those that were not UTF-8."""

    lines: int
    invalid: int


def extract(bitext: Bitext, archives: Path, outputs: Tuple[Path, Path], tolerance: float) -> int:
    """Write both sides to `outputs`; returns their number of lines.

    tolerance: largest relative difference from bitext.lines; 0 for a test set, which must be complete.
    """
    wanted: Dict[str, Dict[str, Path]] = {}
    for address, output in zip((bitext.source, bitext.target), outputs):
        archive, _, member = address.partition("!")
        wanted.setdefault(archive, {})[member] = output
    texts: Dict[Path, Text] = {}
    most = limit_of(bitext, tolerance)
    for archive, members in wanted.items():
        texts.update(_extract(archives / archive, members, most))
    source, target = (texts[output] for output in outputs)
    for address, text in ((bitext.source, source), (bitext.target, target)):
        if text.invalid > (INVALID * text.lines if tolerance else 0):
            raise UserError(f"{address} is not UTF-8 text: {text.invalid} of its {text.lines} lines cannot be read")
    for address, text in ((bitext.source, source), (bitext.target, target)):
        if text.lines == most:
            raise UserError(f"{address} has more than {text.lines - 1} lines, the public release has {bitext.lines}")
    if source.lines != target.lines:
        raise UserError(
            f"{bitext.source} has {source.lines} lines and {bitext.target} has {target.lines}: they are not the two "
            "sides of one text"
        )
    if bitext.lines and abs(source.lines - bitext.lines) > tolerance * bitext.lines:
        raise UserError(f"{bitext.source} has {source.lines} lines, the public release has {bitext.lines}")
    return source.lines


def limit_of(bitext: Bitext, tolerance: float) -> Optional[int]:
    """The number of lines at which a text is too long; None if the number of lines is not known."""
    return int(bitext.lines * (1 + tolerance)) + 1 if bitext.lines else None


def _extract(archive: Path, members: Mapping[str, Path], most: Optional[int]) -> Dict[Path, Text]:
    try:
        if "" in members:
            with gzip.open(archive) as file:
                return {members[""]: write_lines(islice(lines_of(file, str(archive)), most), members[""])}
        return _extract_members(archive, members, most)
    except DAMAGE as error:
        raise UserError(f"{archive} is damaged ({error}): remove it and run this again") from None


def _extract_members(archive: Path, members: Mapping[str, Path], most: Optional[int]) -> Dict[Path, Text]:
    """Extract regular files by name, all in one pass over the archive, because decompression takes most of the time.

    File names are ours, not the archive's, and links in it are not followed.
    """
    texts: Dict[Path, Text] = {}
    with tarfile.open(archive) as tar:
        for entry in tar:
            output = members.get(entry.name[2:] if entry.name.startswith("./") else entry.name)
            if output is None:
                continue
            file = tar.extractfile(entry) if entry.isreg() else None
            if file is None:
                raise UserError(f"{archive}: {entry.name} in it is not a regular file")
            lines = islice(sentences(file, f"{archive}!{entry.name}"), most)
            texts[output] = write_lines(lines, output, entry.name.endswith(MARKED_UP))
            if len(texts) == len(members):
                return texts
    missing = [name for name, output in members.items() if output not in texts]
    raise UserError(f"{archive} has no file {' and no file '.join(missing)}: this is not the archive of the recipe")


def sentences(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The sentences of a file of an archive; its name tells whether it is marked up or compressed."""
    if name.endswith(MARKED_UP):
        text = file.read(MOST_MARKED_UP + 1)
        if len(text) > MOST_MARKED_UP:
            raise UserError(f"{name} has more than {MOST_MARKED_UP} bytes: that is not a test set")
        return (match.group(1) for match in SEGMENT.finditer(text))
    return lines_of(gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file, name)


def lines_of(file: "IO[bytes] | gzip.GzipFile", name: str) -> Iterator[bytes]:
    """Lines of at most LONGEST bytes, else UserError.  Only \\n ends a line: sentences may contain carriage returns."""
    for line in iter(lambda: file.readline(LONGEST + 1), b""):
        if len(line) > LONGEST:
            raise UserError(f"{name} has a line of more than {LONGEST} bytes: it does not have one sentence per line")
        yield line


def write_lines(lines: Iterable[bytes], output: Path, marked_up: bool = False) -> Text:
    """Write one sentence per line, with single spaces between words."""
    count = invalid = 0
    with open(output, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            count += 1
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                text, invalid = line.decode("utf-8", errors="replace"), invalid + 1
            text = html.unescape(text) if marked_up else text
            file.write(" ".join(text.split()) + "\n")
    return Text(count, invalid)
