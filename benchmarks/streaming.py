"""The cost of reading and writing a token in a long stream, against the cost of its attention alone."""

import statistics
import time
from typing import Any, Callable, Dict, List

import torch

from benchmarks.build import Shape, build_model
from benchmarks.decoding import OPTIONS
from benchmarks.harness import Bar, Check, Outcome, Row, Size
from fairseq_milk.generation import StreamingSession
from fairseq_milk.models.target import RNMTSentence

POSITIONS = (20, 200, 2000)
ENDLESS = 10**6  # minimal length of the output: no EOS before that


def percentile(times: List[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def timed(run: Callable[[], object]) -> float:
    """Milliseconds of CPU."""
    start = time.process_time()
    run()
    return 1e3 * (time.process_time() - start)


def around(session: StreamingSession, token: Callable[[], int], count: int) -> Dict[str, List[float]]:
    """The next `count` tokens, each followed by what the attention does at that length: decide, and attend."""
    target = session.decoding.target
    assert isinstance(target, RNMTSentence)
    attention = target.attention

    @torch.no_grad()
    def attend() -> None:
        read = int(target.memory.lengths)
        attention.seek_one(target.queries, target.memory, read - 1, target.i)
        attention.look_back(target.queries, target.memory, read)

    times: Dict[str, List[float]] = {"token": [], "attention": []}
    for _ in range(count):
        times["token"].append(timed(lambda: session.push(token())))
        times["attention"].append(timed(attend))
    return times


def stream(model: Any, positions: List[int], count: int) -> Dict[int, Dict[str, List[float]]]:
    """One long sentence; times around each position, half before it and half after."""
    words = len(model.decoder.dictionary)
    session, position = StreamingSession(model, OPTIONS._replace(min_len=ENDLESS)), 0
    token = lambda: int(torch.randint(4, words, ()))  # noqa: E731
    times = {}
    for target in positions:
        while position < target - count // 2:
            session.push(token())
            position += 1
        times[target] = around(session, token, count)
        position += count
    assert not session.done and session.decoding.i > position - 2, "it has not written one token for one"
    return times


def measure(size: Size) -> Outcome:
    shape = Shape(B=1, J=0, words=size.pick(8000, 200), hidden=size.pick(256, 32))
    model = build_model("milk", shape, energy_bias=5.0).eval()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    positions = list(size.pick(POSITIONS, (20, 60, 100)))
    stream(model, positions[:1], 20)  # the first call, which allocates and loads, is not counted
    streams = [stream(model, positions, size.pick(60, 20)) for _ in range(size.pick(2, 1))]
    torch.set_num_threads(threads)
    figures: Dict[str, Dict[str, float]] = {}
    for position in positions:
        tokens = [t for one in streams for t in one[position]["token"]]
        attending = [t for one in streams for t in one[position]["attention"]]
        figures[f"position {position}"] = {
            "p50 ms": statistics.median(tokens),
            "p99 ms": percentile(tokens, 0.99),
            "attention ms": statistics.median(attending),
        }
    first, last = figures[f"position {positions[0]}"], figures[f"position {positions[-1]}"]
    rest = [figure["p50 ms"] - figure["attention ms"] for figure in (first, last)]
    there = f"at {positions[-1]} / at {positions[0]}"
    checks = [
        Check(f"a token without its attention, {there}", rest[1] / rest[0], Bar("<=", 1.1)),
        Check(f"a token, {there}, p50", last["p50 ms"] / first["p50 ms"]),
        Check("the same, p99", last["p99 ms"] / first["p99 ms"]),
    ]
    return Outcome(checks, figures)


ROWS: List[Row] = [
    Row("streaming", "streaming: time per token at source position 20, 200, 2,000", "itself; its attention", measure)
]
