"""Stand-ins for public corpora: the archives that a recipe names, small, and a web server that can be made to fail."""

import contextlib
import gzip
import hashlib
import html
import io
import random
import tarfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Dict, Iterator, List, Tuple

from examples.prepare.recipe import Archive, Corpus
from examples.verb_final import language

LINES = {"train": 300, "valid": 20, "test": 25, "test1": 15, "test2": 10}
MERGES = 100


def pairs(count: int, seed: int) -> List[Tuple[str, str]]:
    """Random sentences with capitals and punctuation, for the tokeniser and truecaser."""
    rng, lexicon = random.Random(seed), language.Lexicon.default()
    drawn = [language.sample(rng, lexicon) for _ in range(count)]
    return [(_written(sentence.source), _written(sentence.target)) for sentence in drawn]


def _written(words: Any) -> str:
    text = " ".join(words)
    return f"{text[0].upper()}{text[1:]}, »{words[-1]}« & Co."


def stand_in(corpus: Corpus, folder: Path) -> Corpus:
    """Write small archives as the recipe names them, and return the recipe with their sizes and digests."""
    contents: Dict[str, Dict[str, bytes]] = {}
    for split, bitexts in corpus.splits().items():
        for seed, bitext in enumerate(bitexts):
            for address, lines in zip((bitext.source, bitext.target), zip(*pairs(LINES[split], seed))):
                archive, _, member = address.partition("!")
                contents.setdefault(archive, {})[member] = _file(member, lines)
    archives = tuple(_write(folder / archive.path, archive, contents[archive.path]) for archive in corpus.archives)
    train, valid, test, *more = (
        tuple(bitext._replace(lines=LINES[split] if bitext.lines else 0) for bitext in bitexts)  # 0: not known
        for split, bitexts in corpus.splits().items()
    )
    small = corpus._replace(archives=archives, merges=MERGES, more_tests=tuple(bitext for (bitext,) in more))
    return small._replace(train=train, valid=valid, test=test)


def _file(member: str, lines: Tuple[str, ...]) -> bytes:
    text = "".join(line + "\n" for line in lines)
    if member.endswith(".sgm"):
        text = "".join(f'<seg id="{n}">{html.escape(line)}</seg>\n' for n, line in enumerate(lines, start=1))
        text = f'<srcset setid="newstest">\n<doc docid="1">\n{text}</doc>\n</srcset>\n'
    data = text.encode("utf-8")
    return gzip.compress(data) if member.endswith(".gz") else data


def _write(path: Path, archive: Archive, members: Dict[str, bytes]) -> Archive:
    path.parent.mkdir(parents=True, exist_ok=True)
    if "" in members:
        path.write_bytes(gzip.compress(members[""]))
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as tar:
            for name, data in {"README": b"not text of the corpus\n", **members}.items():
                entry = tarfile.TarInfo(f"./{name}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    data = path.read_bytes()
    return archive._replace(size=len(data), digest=f"sha256:{hashlib.sha256(data).hexdigest()}")


class Server(ThreadingHTTPServer):
    """cuts: after how many bytes the next answers break off.  ranges: the Range header of every request so far."""

    daemon_threads = True

    def __init__(self, folder: Path, cuts: List[int], ignores_ranges: bool, endless: bool) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, folder))
        self.cuts, self.ignores_ranges, self.endless = cuts, ignores_ranges, endless
        self.ranges: List[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def __init__(self, folder: Path, *args: Any) -> None:
        self.folder = folder
        super().__init__(*args)

    def do_GET(self) -> None:  # noqa: N802
        wanted = self.headers.get("Range", "")
        self.server.ranges.append(wanted)
        path = self.folder / self.path.lstrip("/")
        if not path.is_file():
            return self.send_error(404)
        data = path.read_bytes()
        first = 0 if self.server.ignores_ranges or not wanted else int(wanted[len("bytes=") : -1])
        if first >= len(data):
            return self.send_error(416)
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        body = data[first:]
        if self.server.endless:
            return self._write_without_end(body)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)

    def _write_without_end(self, body: bytes) -> None:
        """Send no length, and after the file an endless stream of bytes until the client closes the connection."""
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)
            while True:
                self.wfile.write(bytes(1 << 16))

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def serve(folder: Path, *cuts: int, ignores_ranges: bool = False, endless: bool = False) -> Iterator[Server]:
    with Server(folder, list(cuts), ignores_ranges, endless) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
