"""How the time and memory of a MILk training step grow with J = I, B, the layers and the number of ranks."""

import json
import math
import re
import statistics
import time
from typing import Callable, Dict, List, NamedTuple, Sequence

import torch

from benchmarks.build import Shape, training_step
from benchmarks.corpus import corpus
from benchmarks.harness import (
    ROOT,
    Check,
    NotMeasuredError,
    Outcome,
    Row,
    Size,
    in_fresh_process,
    peak_memory,
    run_command,
)
from benchmarks.words_per_second import command_line

BASE = Shape(B=16, J=20, words=1000, layers=2, hidden=128)


class Axis(NamedTuple):
    """A quantity that grows, and the reason for its growth."""

    name: str
    field: str  # of Shape
    values: Sequence[int]
    quick: Sequence[int]
    base: Shape
    why: str


AXES = [
    Axis(
        "J",
        "J",
        (10, 25, 50, 100, 200, 400),
        (5, 10),
        BASE,
        "LSTM layers and output layer cost O(J), the energies O(J^2), so the time bends from linear to quadratic; the "
        "tanh of an energy is computed again in the backward, so what is kept of a pair (i, j) is six numbers (p, "
        "1 - p, alpha, beta, and alpha and u without padding), not one per hidden unit.",
    ),
    Axis(
        "B",
        "B",
        (16, 32, 64, 128, 256, 512),
        (4, 8),
        BASE,
        "below 1 at first, because a step of the time loop has a fixed price that a small batch does not fill; then "
        "every sentence costs the same. The memory is linear plus the gradients of the parameters.",
    ),
    Axis(
        "layers",
        "layers",
        (1, 2, 4, 8),
        (1, 2),
        BASE._replace(B=64),
        "below 1, because a layer of each stack is added to a constant part, the attention and the output layer; the "
        "upper layers run over the whole sequence at once, so none of them lengthens the time loop.",
    ),
]
RANKS_WHY = (
    "each rank has a batch and a core of its own, so that 2 would be no loss at all; what can be lost is the exchange "
    "of all gradients once per update and the memory bandwidth that the cores share. Two single runs: what lies above "
    "2 is the noise of the machine."
)


def warm_step(shape: Shape) -> Callable[[], None]:
    """A training step, after one that makes torch load its libraries."""
    training_step("milk", shape._replace(B=2, J=3))()
    return training_step("milk", shape)


def milliseconds(shape: Shape) -> float:
    """CPU milliseconds of the second step, for which memory is already allocated, on one thread."""
    torch.set_num_threads(1)
    step = warm_step(shape)
    step()
    start = time.process_time()
    step()
    return 1e3 * (time.process_time() - start)


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The exponent at the upper end: y ~ x^slope between the last two points."""
    return math.log(ys[-1] / ys[-2]) / math.log(xs[-1] / xs[-2])


def axis_row(axis: Axis) -> Row:
    def measure(size: Size) -> Outcome:
        values = size.pick(axis.values, axis.quick)
        figures: Dict[str, Dict[str, float]] = {}
        for value in values:
            shape = axis.base._replace(**{axis.field: value})  # type: ignore[arg-type]
            cost = {"CPU ms": in_fresh_process(milliseconds, shape), "peak MB": peak_memory(warm_step, shape)}
            figures[f"{axis.name}={value}"] = cost
        checks = []
        for unit, what in (("CPU ms", "time"), ("peak MB", "memory")):
            ys = [max(figure[unit], 0.1) for figure in figures.values()]
            name = f"{what} ~ {axis.name}^, from {values[-2]} to {values[-1]}"
            checks.append(Check(name, slope(values, ys), None, ""))
        return Outcome(checks, figures, axis.why)

    base = ", ".join(f"{k}={v}" for k, v in axis.base._asdict().items() if k != axis.field)
    return Row(f"growth-{axis.name}", f"MILk training step against {axis.name} ({base})", "itself", measure)


def ranks(size: Size) -> Outcome:
    """Words per second as `fairseq-train` logs them, without the first lines."""
    data = corpus(size)[0]
    updates, hidden = size.pick((10, 256), (6, 16))
    arguments = command_line("milk", data, 2, hidden, size.pick(1000, 300)) + ["--max-update", str(updates)]
    arguments += ["--log-format", "json", "--log-interval", "1"]
    figures: Dict[str, Dict[str, float]] = {}
    for world in (1, 2):
        done = run_command("bash", ROOT / "scripts" / "train_cpu_ranks.sh", world, *arguments)
        figures[f"ranks={world}"] = {"words/s": statistics.median(words_per_second(done.output)[2:])}
    rates = [figure["words/s"] for figure in figures.values()]
    return Outcome([Check("words per second, 2 ranks / 1 rank, wall", rates[1] / rates[0])], figures, RANKS_WHY)


def words_per_second(output: str) -> List[float]:
    lines = [json.loads(found) for found in re.findall(r"\{.*\"wps\".*\}", output)]
    rates = [float(line["wps"]) for line in lines if "wps" in line]
    if len(rates) < 3:
        raise NotMeasuredError(f"fairseq-train logged no words per second: {output[-500:]}")
    return rates


ROWS: List[Row] = [axis_row(axis) for axis in AXES]
ROWS.append(Row("growth-ranks", "`fairseq-train` with MILk on 1 and 2 gloo ranks", "itself", ranks))
