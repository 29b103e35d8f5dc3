"""Rows of the benchmark, and how time and memory of their variants are measured.

Machines are noisy, so nothing is compared across runs.  The variants of a row take turns, in an order that is reversed
every round, and the ratio of two of them is the median over the rounds of the ratio within a round.  Bars on
time are on the CPU time of one thread, which other processes disturb least; the wall time on all cores is given
for information.  Only the bar of `simuleval` is on wall time.
"""

import ctypes
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, TypeVar

import torch

ROOT = Path(__file__).resolve().parents[1]
SIMULEVAL = ROOT / ".venv-simuleval" / "bin"
CORES = os.cpu_count() or 1
MEGABYTE = 2.0**20
CLOCKS: Dict[str, Callable[[], float]] = {"cpu": time.process_time, "wall": time.perf_counter}
ROUNDS = {"cpu": (3, 400), "wall": (1, 200)}  # of a comparison, at least and at most
PRELOAD = ["benchmarks.__main__"]
M_MMAP_THRESHOLD = -3  # of malloc.h
T = TypeVar("T")


# ---- rows ------------------------------------------------------------------------------------------------------------


class Bar(NamedTuple):
    sign: str  # "<=", "<" or ">="
    limit: float

    def met(self, value: float) -> bool:
        return {"<=": value <= self.limit, "<": value < self.limit, ">=": value >= self.limit}[self.sign]


class Check(NamedTuple):
    """One measured number, with or without a bar."""

    what: str
    value: float
    bar: Optional[Bar] = None
    unit: str = "x"


class Outcome(NamedTuple):
    checks: List[Check]
    figures: Dict[str, Dict[str, float]]  # variant -> measured quantity with its unit -> value
    note: str = ""


class Size(NamedTuple):
    """The time that a row may take."""

    quick: bool
    out: Path  # for what is kept between runs

    def pick(self, full: T, quick: T) -> T:
        return quick if self.quick else full

    @property
    def seconds(self) -> float:
        """For the rounds of one comparison."""
        return 0.5 if self.quick else 10.0


class Row(NamedTuple):
    name: str
    what: str
    against: str
    measure: Callable[[Size], Outcome]
    tried: str = ""  # for a bar that is missed: where the time goes, and what did not help


class NotMeasuredError(Exception):
    """A row cannot be measured here; the message says why."""


# ---- time ------------------------------------------------------------------------------------------------------------


class Comparison:
    """The times of some variants in seconds, round by round."""

    def __init__(self, names: Sequence[str]) -> None:
        self.cpu: Dict[str, List[float]] = {name: [] for name in names}
        self.wall: Dict[str, List[float]] = {name: [] for name in names}

    def ratio(self, one: str, other: str, clock: str = "cpu") -> float:
        times = self.cpu if clock == "cpu" else self.wall
        return statistics.median(a / b for a, b in zip(times[one], times[other]))

    def check(self, one: str, other: str, bar: Optional[Bar], what: str = "") -> List[Check]:
        """CPU time, compared with the bar, and wall time for information."""
        what = what or f"{one} / {other}"
        checks = [Check(f"{what}, CPU", self.ratio(one, other), bar)]
        if self.wall[one]:
            checks.append(Check(f"{what}, wall on {CORES} cores", self.ratio(one, other, "wall")))
        return checks

    def figures(self) -> Dict[str, Dict[str, float]]:
        result: Dict[str, Dict[str, float]] = {}
        for name in self.cpu:
            result[name] = {"CPU ms": 1e3 * statistics.median(self.cpu[name]), "rounds": len(self.cpu[name])}
            if self.wall[name]:
                result[name]["wall ms"] = 1e3 * statistics.median(self.wall[name])
        return result


Seconds = Callable[[str, int], float]  # of one step: by which clock, on how many threads


def compare(variants: Mapping[str, Callable[[], object]], size: Size, share: float = 1.0) -> Comparison:
    """Time the variants in turns, in this process.  share: of the seconds that a row has."""
    threads = torch.get_num_threads()
    try:
        return _compare({name: partial(step_seconds, step) for name, step in variants.items()}, size, share)
    finally:
        torch.set_num_threads(threads)


def compare_processes(
    builds: Mapping[str, Callable[[], Callable[[], object]]], size: Size, share: float = 1.0
) -> Comparison:
    """Time the variants in turns, each built and timed in a process of its own, as commands are."""
    with ExitStack() as stack:
        variants: Dict[str, Seconds] = {}
        for name, build in builds.items():
            pool = stack.enter_context(fresh_process())
            pool.apply(_keep, (build,))
            variants[name] = partial(_apply, pool, _kept_seconds)
        return _compare(variants, size, share)


def step_seconds(step: Callable[[], object], clock: str, threads: int) -> float:
    torch.set_num_threads(threads)
    start = CLOCKS[clock]()
    step()
    return CLOCKS[clock]() - start


_kept: Callable[[], object]  # the variant of this process


def _keep(build: Callable[[], Callable[[], object]]) -> None:
    global _kept
    _kept = build()


def _kept_seconds(clock: str, threads: int) -> float:
    return step_seconds(_kept, clock, threads)


def _apply(pool: Any, function: Callable[..., T], *arguments: Any) -> T:
    return pool.apply(function, arguments)


def _compare(variants: Mapping[str, Seconds], size: Size, share: float) -> Comparison:
    """Two thirds of the time on one thread.

    A quick run stays on one thread: two threads that wait for each other on a busy machine take a hundred times longer.
    """
    result, seconds = Comparison(list(variants)), share * size.seconds
    for step in variants.values():
        step("cpu", 1)  # the first call, which allocates and loads, is not counted
    _rounds(variants, result.cpu, "cpu", 1, seconds * 2 / 3)
    if not size.quick:
        _rounds(variants, result.wall, "wall", CORES, seconds / 3)
    return result


def _rounds(
    variants: Mapping[str, Seconds], times: Dict[str, List[float]], clock: str, threads: int, seconds: float
) -> None:
    (fewest, most), names, done, used = ROUNDS[clock], list(variants), 0, 0.0
    while done < fewest or (used < seconds and done < most):
        for name in names:
            times[name].append(variants[name](clock, threads))
            used += times[name][-1]
        names.reverse()
        done += 1


# ---- memory ----------------------------------------------------------------------------------------------------------


def peak_memory(build: Callable[..., Callable[[], object]], *arguments: Any) -> float:
    """Peak memory in megabytes of the step that `build(*arguments)` returns, without the memory in use before it."""
    return in_fresh_process(_peak, build, *arguments)


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    with fresh_process() as pool:
        return _apply(pool, function, *arguments)


def fresh_process() -> Any:
    """A pool of one process, forked from a process that has only imported the modules."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context.Pool(1)


def _peak(build: Callable[..., Callable[[], object]], *arguments: Any) -> float:
    torch.set_num_threads(1)
    _leave_no_holes()
    return extra_memory(build(*arguments))


def _leave_no_holes() -> None:
    """Make glibc return blocks of more than 64 kB to the system when they are freed.

    Otherwise the peak would include freed memory that malloc keeps between small tensors.
    """
    try:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 16)
    except (AttributeError, OSError):
        pass


def extra_memory(step: Callable[[], object]) -> float:
    """Peak resident memory during `step` minus what was resident before, in megabytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts again from what is resident now
    except OSError:
        pass
    before = _peak_resident()
    step()
    return (_peak_resident() - before) / MEGABYTE


def _peak_resident() -> float:
    """Bytes.  getrusage would count the memory of the parent at the time of the fork, hence the first choice."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) * (1 if sys.platform == "darwin" else 1024)


# ---- commands --------------------------------------------------------------------------------------------------------


def environment(**changes: str) -> Dict[str, str]:
    """One thread, no warnings, this environment's commands first, the repository importable."""
    paths = {"PATH": str(Path(sys.executable).parent), "PYTHONPATH": str(ROOT)}
    joined = {name: os.pathsep.join(filter(None, (path, os.environ.get(name)))) for name, path in paths.items()}
    return {**os.environ, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", **joined, **changes}


class Finished(NamedTuple):
    output: str
    cpu: float  # seconds, of the command and its children
    wall: float


def run_command(*command: Any, folder: Path = ROOT, **changes: str) -> Finished:
    """A command to its end in a folder; its output and what it cost."""
    arguments = [str(argument) for argument in command]
    used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(**changes), cwd=folder
    )
    wall, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise NotMeasuredError(f"{' '.join(arguments[:3])} ... failed: {done.stdout.strip()[-500:]}")
    return Finished(done.stdout, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, wall)
