"""One endless sentence through `fairseq-milk stream`: memory per token.

python -m tests.reliability.endless --tokens 100000
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List

import torch
from fairseq.data import Dictionary

from fairseq_milk.cli import main
from tests.support import fairseq_commands as commands
from tests.support.processes import child, resident

UNITS = 32


def train(folder: Path) -> Path:
    """Make a MILk of 32 units whose head always writes and which never predicts EOS; return its data directory."""
    data = commands.make_corpus(folder)
    sizes = ["--embed-dim", UNITS, "--hidden-size", UNITS, "--energy-dim", UNITS]
    more = [*sizes, "--energy-bias", 0.2, "--disable-validation"]
    commands.run("fairseq-train", *commands.training(data, folder / "model", *more, max_update=1))
    checkpoint = folder / "model" / "checkpoint_last.pt"
    state = torch.load(checkpoint)
    # An EOS that is too early would be tried again at every step.
    state["model"]["decoder.output.bias"][Dictionary().eos()] = -100.0
    torch.save(state, checkpoint)
    return data


def study(folder: Path, tokens: int, pieces: int = 10) -> Dict[str, Any]:
    """The memory after each tenth of the source; one word is written per fifty read, and the output is discarded."""
    data = train(folder)
    limits = ["--no-early-eos", "--max-len-a", "0.02", "--max-len-b", "0"]
    arguments = ["stream", str(folder / "model" / "checkpoint_last.pt"), "--data", str(data), *limits]
    source, feed = os.pipe()
    memory: List[int] = []
    start = time.monotonic()
    with open(os.devnull, "wb") as null:
        with child(lambda: main(arguments), folder / "stderr", [feed], stdin=source, stdout=null.fileno()) as process:
            os.close(source)
            with open(feed, "wb") as pipe:
                for _ in range(pieces):
                    pipe.write(b"a1 " * (tokens // pieces))
                    pipe.flush()  # a pipe holds 65,536 bytes: what is unread is at most that
                    memory.append(resident(process.pid))
            process.join()
            assert process.exitcode == 0, (folder / "stderr").read_text()
    stated = 4 * (UNITS + 2 * UNITS)
    megabytes = [round(size / 2**20) for size in memory]
    return {
        "tokens": tokens,
        "MB after each tenth": megabytes,
        "bytes per token, stated": stated,
        "bytes per token, measured": round((memory[-1] - memory[0]) / (tokens * (pieces - 1) / pieces)),
        "seconds": round(time.monotonic() - start),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=100_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        print(study(Path(name), options.tokens))
