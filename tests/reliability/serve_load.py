"""Many people typing at once: a server of `fairseq-milk serve` under load, in a process of its own.

    python -m tests.reliability.serve_load MODEL SENTENCES [--sessions 200] [--words-per-minute 180] [--total 10000]

MODEL: a folder of `fairseq-milk export`; SENTENCES: a text file in its source language.  Every session sends a word,
and then the end of the sentence, at its own steady pace, without waiting for answers.  Measured: seconds from a word
to its answer; processor time of the server per word, which gives the number of such sessions per core; its memory
after the first tenth and at the end.  Every translation is compared with that of `fairseq_milk.load(MODEL)` in this
process: the exit code is 1 if one is missing or different.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from websockets.asyncio.client import connect

from fairseq_milk.live import load
from tests.support.processes import resident

LONGEST = 60  # words: longer lines are left out


class Load(NamedTuple):
    sessions: int
    words_per_minute: float
    total: int  # sentences

    @property
    def pause(self) -> float:
        """Seconds between the words of a session."""
        return 60 / self.words_per_minute


class Measured:
    """The measurements of all sessions of a run."""

    def __init__(self, expected: Dict[str, str], load: Load, pid: int) -> None:
        self.expected, self.load, self.pid = expected, load, pid
        self.sentences: Iterator[str] = self._draw()
        self.waits: List[float] = []  # seconds from a word, or the end, to its answer
        self.finished = self.different = 0
        self.early_memory = 0

    def _draw(self) -> Iterator[str]:
        texts, draw = list(self.expected), random.Random(1)
        for _ in range(self.load.total):
            yield draw.choice(texts)

    def finish(self, sentence: str, text: str) -> None:
        self.finished += 1
        self.different += text != self.expected[sentence]
        if self.finished == self.load.total // 10:
            self.early_memory = resident(self.pid)


async def person(url: str, measured: Measured) -> None:
    """Types sentences until there are no more."""
    pause = measured.load.pause
    await asyncio.sleep(random.random() * pause * 3)
    async with connect(url, compression=None, ping_timeout=None) as socket:
        await socket.recv()
        for number, sentence in zip(count(1), measured.sentences):
            sent: List[float] = []
            typing = asyncio.ensure_future(type_sentence(socket, number, sentence.split(), pause, sent))
            for position in range(len(sentence.split()) + 1):
                answer = json.loads(await socket.recv())
                measured.waits.append(time.perf_counter() - sent[position])
                if answer["type"] != "answer" or answer["sentence"] != number:
                    raise AssertionError(answer)
            await typing
            measured.finish(sentence, answer["text"])


async def type_sentence(socket: Any, number: int, words: List[str], pause: float, sent: List[float]) -> None:
    """Send one message per pause, the last for the end; sent: the time of each message."""
    await socket.send(json.dumps({"type": "begin", "sentence": number}))
    messages = [*({"type": "push", "text": word} for word in words), {"type": "end"}]
    next_time = time.perf_counter()
    for message in messages:
        sent.append(time.perf_counter())
        await socket.send(json.dumps(message))
        next_time += pause
        await asyncio.sleep(max(0.0, next_time - time.perf_counter()))


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def run(model: str, expected: Dict[str, str], load: Load) -> int:
    command = [str(Path(sys.executable).with_name("fairseq-milk")), "serve", model, "--port", "0"]
    limits = ["--sessions", str(2 * load.sessions), "--sessions-per-client", str(2 * load.sessions)]
    with subprocess.Popen([*command, *limits], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        description, url = server.stdout.readline().strip(), server.stdout.readline().split()[0]
        measured = Measured(expected, load, server.pid)
        began, used = time.perf_counter(), processor_seconds(server.pid)
        try:
            people = [person(url.replace("http", "ws", 1) + "/api/session", measured) for _ in range(load.sessions)]
            await asyncio.gather(*people)
            seconds, used = time.perf_counter() - began, processor_seconds(server.pid) - used
            growth, memory = resident(server.pid) - measured.early_memory, resident(server.pid)
        finally:
            server.terminate()
    print(f"{description}: {load.sessions} sessions at {load.words_per_minute:g} words per minute, {seconds:.0f} s")
    report(measured, seconds, used)
    print(f"  memory {memory / 2**20:.0f} MB, {growth / 2**20:+.1f} MB since the first tenth; exit {server.returncode}")
    return int(measured.finished != load.total or measured.different > 0 or server.returncode != 0)


def report(measured: Measured, seconds: float, used: float) -> None:
    """seconds: of the clock; used: of the server's processor time."""
    load, waits = measured.load, sorted(measured.waits)
    lost, per_word = load.total - measured.finished, used / len(waits)
    shares = {share: 1000 * waits[int(share * (len(waits) - 1))] for share in (0.5, 0.9, 0.99, 1)}
    listed = ", ".join(f"p{100 * share:g} {wait:.1f} ms" for share, wait in shares.items())
    print(f"  {measured.finished} sentences, {lost} lost, {measured.different} different from the translator's own")
    print(f"  {len(waits)} words and ends, {len(waits) / seconds:.0f} per second; from one to its answer: {listed}")
    carried = 60 / (per_word * load.words_per_minute)
    print(f"  {1000 * per_word:.2f} ms of processor time per word: {carried:.0f} such sessions per core")


def main(given: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--words-per-minute", type=float, default=180)
    parser.add_argument("--total", type=int, default=10000, help="sentences")
    args = parser.parse_args(given)
    lines = args.sentences.read_text(encoding="utf-8").splitlines()
    texts = sorted({line for line in lines if 0 < len(line.split()) <= LONGEST})[:200]
    translator = load(args.model)
    expected = {text: translator.translate(text).text for text in texts}
    return asyncio.run(run(args.model, expected, Load(args.sessions, args.words_per_minute, args.total)))


if __name__ == "__main__":
    sys.exit(main())
