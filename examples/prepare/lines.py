"""Applies a function to the lines of text files in several processes, in order and with bounded memory."""

from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Callable, Deque, Iterable, Iterator, List, Sequence, TypeVar

from examples.prepare.steps import Progress

CHUNK = 2000  # lines per call
AHEAD = 4  # chunks read ahead per worker
T = TypeVar("T")


def read_lines(paths: Sequence[Path], progress: Progress) -> Iterator[str]:
    """The lines of all files, one after the other.  Only \\n ends a line."""
    for path in paths:
        with open(path, "rb") as file:
            for line in file:
                progress.add(len(line))
                yield line.decode("utf-8").rstrip("\n")


def chunks(lines: Iterable[str]) -> Iterator[List[str]]:
    iterator = iter(lines)
    return iter(lambda: list(islice(iterator, CHUNK)), [])


def map_chunks(function: Callable[[List[str]], T], lines: Iterable[str], workers: int) -> Iterator[T]:
    """function(chunk) for each chunk, in order.  Reads little ahead, because a corpus may not fit into memory."""
    if workers == 1:
        yield from map(function, chunks(lines))
        return
    with ProcessPoolExecutor(workers) as pool:
        pending: Deque[Future[T]] = deque()
        for chunk in chunks(lines):
            pending.append(pool.submit(function, chunk))
            if len(pending) > AHEAD * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def map_lines(
    function: Callable[[List[str]], List[str]], sources: Sequence[Path], output: Path, workers: int, progress: Progress
) -> None:
    """Write the lines that `function` returns for every chunk, as many as it was given."""
    with open(output, "w", encoding="utf-8", newline="\n") as file:
        for chunk in map_chunks(function, read_lines(sources, progress), workers):
            file.writelines(line + "\n" for line in chunk)


def total_size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)
