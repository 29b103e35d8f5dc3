"""Text files out of archives, one sentence a line, and the checks that tell a corpus from a ruin of one."""

import gzip
import html
import re
import tarfile
import zlib
from pathlib import Path
from posixpath import normpath
from typing import IO, Dict, Iterable, Mapping, NamedTuple, Tuple

from examples.prepare.recipe import Bitext
from fairseq_milk.console.errors import UserError

INVALID = 1e-3  # the share of lines that may not be UTF-8; cleaning drops them
SEGMENT = re.compile(rb"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
MARKED_UP = ".sgm"  # <seg id="1">...</seg>, with entities
DAMAGE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)


class Text(NamedTuple):
    """What was read: lines, and those of them that were not UTF-8."""

    lines: int
    invalid: int


def extract(bitext: Bitext, archives: Path, outputs: Tuple[Path, Path], tolerance: float) -> int:
    """Write both sides; returns their number of lines.

    tolerance: how far it may be from bitext.lines, as a share.  0 for a test set, of which nothing may be missing.
    """
    wanted: Dict[str, Dict[str, Path]] = {}
    for address, output in zip((bitext.source, bitext.target), outputs):
        archive, _, member = address.partition("!")
        wanted.setdefault(archive, {})[member] = output
    texts: Dict[Path, Text] = {}
    for archive, members in wanted.items():
        texts.update(_extract(archives / archive, members))
    source, target = (texts[output] for output in outputs)
    for address, text in ((bitext.source, source), (bitext.target, target)):
        if text.invalid > (INVALID * text.lines if tolerance else 0):
            raise UserError(f"{address} is not UTF-8 text: {text.invalid} of its {text.lines} lines cannot be read")
    if source.lines != target.lines:
        raise UserError(
            f"{bitext.source} has {source.lines} lines and {bitext.target} has {target.lines}: they are not the two "
            "sides of one text"
        )
    if bitext.lines and abs(source.lines - bitext.lines) > tolerance * bitext.lines:
        raise UserError(f"{bitext.source} has {source.lines} lines, the public release has {bitext.lines}")
    return source.lines


def _extract(archive: Path, members: Mapping[str, Path]) -> Dict[Path, Text]:
    try:
        if "" in members:
            with gzip.open(archive) as file:
                return {members[""]: write_lines(file, members[""])}
        return _extract_members(archive, members)
    except DAMAGE as error:
        raise UserError(f"{archive} is damaged ({error}): remove it and run this again") from None


def _extract_members(archive: Path, members: Mapping[str, Path]) -> Dict[Path, Text]:
    """In one pass, for it is the decompression that takes time."""
    texts: Dict[Path, Text] = {}
    with tarfile.open(archive) as tar:
        for entry in tar:
            output = members.get(normpath(entry.name))
            file = tar.extractfile(entry) if output is not None else None
            if output is None or file is None:
                continue
            texts[output] = write_lines(sentences(file, entry.name), output, entry.name.endswith(MARKED_UP))
            if len(texts) == len(members):
                return texts
    missing = [name for name, output in members.items() if output not in texts]
    raise UserError(f"{archive} has no file {' and no file '.join(missing)}: it is another archive than the recipe's")


def sentences(file: IO[bytes], name: str) -> Iterable[bytes]:
    """Of a file of an archive, by its name.  A line ends at \\n alone: sentences have carriage returns within."""
    if name.endswith(MARKED_UP):
        return SEGMENT.findall(file.read())
    return gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file


def write_lines(lines: Iterable[bytes], output: Path, marked_up: bool = False) -> Text:
    """One sentence a line, words one space apart, whatever white space or separator was between them."""
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
