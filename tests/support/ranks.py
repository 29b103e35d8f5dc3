"""Ranks of a data-parallel `fairseq-train` over gloo.  They are forked, which saves the import of fairseq."""

import contextlib
import socket
from functools import partial
from pathlib import Path
from typing import List

from tests.support.fairseq_commands import run
from tests.support.processes import child

RANKS = 2


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def rank_options(number: int, port: int) -> List[str]:
    """The options of one rank, as in `scripts/train_cpu_ranks.sh`."""
    ranks = (
        f"--ddp-backend legacy_ddp --distributed-backend gloo --distributed-no-spawn --distributed-world-size {RANKS}"
    )
    return [*ranks.split(), "--distributed-init-method", f"tcp://127.0.0.1:{port}", "--distributed-rank", str(number)]


def train_ranks(arguments: List[str], folder: Path) -> str:
    """Train to the end; returns the standard output and the log of each rank."""
    port = free_port()

    def train(number: int) -> None:
        print(run("fairseq-train", *arguments, *rank_options(number, port)).log, flush=True)

    outputs, errors = ([folder / f"{name}-{number}" for number in range(RANKS)] for name in ("output", "errors"))
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(path, "wb")) for path in outputs]
        started = [
            stack.enter_context(child(partial(train, number), errors[number], stdout=file.fileno()))
            for number, file in enumerate(files)
        ]
        for number, process in enumerate(started):
            process.join(600)
            assert process.exitcode == 0, errors[number].read_text()[-3000:]
    return "".join(path.read_text() for path in outputs)
