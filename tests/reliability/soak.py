"""The same sentences over and over, through `fairseq-generate` and through one `fairseq-milk stream`.

    python -m tests.reliability.soak --sentences 1000 --passes 10

Every pass must give the same output as the first, and memory must not grow after the first pass.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, List, NamedTuple
from unittest import mock

import torch

from fairseq_milk.cli import main
from fairseq_milk.generation import SimultaneousGenerator
from tests.support import fairseq_commands as commands
from tests.support.processes import child, resident

LIMITS = ("--max-len-a", "1", "--max-len-b", "2")


class Figures(NamedTuple):
    what: str
    sentences: int
    different: int  # from the same sentence of the first pass
    growth: int  # bytes, from the end of the first pass to the end
    peak: int  # bytes
    seconds: float


def lines(sentences: int) -> List[str]:
    """Sentences of the language of `commands.make_corpus`, with an unknown word and an empty line among them."""
    draw = random.Random(7)
    drawn = [" ".join(f"a{draw.randrange(9)}" for _ in range(draw.randint(2, 8))) for _ in range(sentences)]
    return ["", *drawn[1:]]


def generate(data: Path, checkpoint: Path, folder: Path, sentences: int, passes: int) -> Figures:
    """`fairseq-generate` on a test set that contains all passes; it sorts by length, so that the passes are mixed."""
    text = lines(sentences) * passes
    for language, letter in (("de", "a"), ("en", "b")):
        (folder / f"soak.{language}").write_text("".join(line.replace("a", letter) + "\n" for line in text))
    dictionaries = ["--srcdict", data / "dict.de.txt", "--tgtdict", data / "dict.en.txt"]
    binary = folder / "soak-bin"
    into = ["--testpref", folder / "soak", "--destdir", binary]
    commands.run("fairseq-preprocess", "-s", "de", "-t", "en", *into, *dictionaries)
    arguments = commands.decoding(binary, checkpoint, *LIMITS, "--batch-size", 10, "--results-path", folder / "results")

    def work() -> None:
        memory: List[int] = []
        whole = SimultaneousGenerator.generate

        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            memory.append(resident())
            return whole(self, *args, **kwargs)

        with mock.patch.object(SimultaneousGenerator, "generate", watched):
            with mock.patch.object(sys, "argv", ["fairseq-generate", *arguments]):
                commands.COMMANDS["fairseq-generate"]()
        (folder / "memory").write_text(json.dumps(memory))

    seconds = timed(work, folder / "stderr")
    memory = json.loads((folder / "memory").read_text())
    records = [json.loads(line) for line in (folder / "results" / "generate-test.jsonl").read_text().splitlines()]
    outputs = [(record["hypothesis"], record["delays"]) for record in sorted(records, key=lambda record: record["id"])]
    assert len(outputs) == len(text)
    return figures("fairseq-generate", outputs, sentences, memory[len(memory) // passes :], seconds)


def stream(data: Path, checkpoint: Path, folder: Path, sentences: int, passes: int) -> Figures:
    """`fairseq-milk stream` in one process, one sentence after the other."""
    text = "".join(line + "\n" for line in lines(sentences)).encode()
    arguments = ["stream", str(checkpoint), "--data", str(data), *LIMITS]
    (source, feed), (result, sink) = os.pipe(), os.pipe()
    memory: List[int] = []
    outputs: List[bytes] = []
    start = time.monotonic()
    with child(lambda: main(arguments), folder / "stderr", [feed, result], stdin=source, stdout=sink) as process:
        for fd in (source, sink):
            os.close(fd)
        with open(feed, "wb") as pipe, open(result, "rb") as answers:
            for _ in range(passes):
                feeder = threading.Thread(target=lambda: [pipe.write(text), pipe.flush()])  # type: ignore[func-returns-value]
                feeder.start()
                outputs += [answers.readline() for _ in range(sentences)]
                feeder.join()
                memory.append(resident(process.pid))
        process.join(60)
        assert process.exitcode == 0, (folder / "stderr").read_text()
    return figures("fairseq-milk stream", outputs, sentences, memory, time.monotonic() - start)


def timed(work: Callable[[], object], stderr: Path) -> float:
    start = time.monotonic()
    with open(os.devnull, "wb") as null, child(work, stderr, stdout=null.fileno()) as process:
        process.join()
        assert process.exitcode == 0, stderr.read_text()[-3000:]
    return time.monotonic() - start


def figures(what: str, outputs: List[Any], sentences: int, memory: List[int], seconds: float) -> Figures:
    different = sum(output != outputs[i % sentences] for i, output in enumerate(outputs))
    return Figures(what, len(outputs), different, memory[-1] - memory[0], max(memory), seconds)


if __name__ == "__main__":
    from tests.support.tiny_translators import make_plain

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--passes", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        model = make_plain(Path(name))
        for run in (generate, stream):
            print(run(model.bin, model.checkpoint, Path(name), options.sentences, options.passes), flush=True)
