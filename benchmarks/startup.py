"""Start-up: importing the plugin after fairseq, the mathematics after torch, and the help of the command."""

import json
import statistics
import sys
from typing import List

from benchmarks.harness import Bar, Check, Outcome, Row, Size, run_command

PROGRAM = """
import json, sys, time
import fairseq
before, cpu, wall = set(sys.modules), time.process_time(), time.perf_counter()
import fairseq_milk
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
print(json.dumps({"cpu": cpu, "wall": wall, "modules": sorted(set(sys.modules) - before)}))
"""
MATHEMATICS = """
import time
import torch
cpu = time.process_time()
import fairseq_milk.functional
print(time.process_time() - cpu)
"""
UNWANTED = ("matplotlib", "simuleval", "sacremoses", "subword_nmt", "pandas", "sklearn", "scipy")


def measure(size: Size) -> Outcome:
    outputs = [run_command(sys.executable, "-c", PROGRAM).output for _ in range(size.pick(2, 1))]
    runs = [json.loads(output.splitlines()[-1]) for output in outputs]
    foreign = sorted({name.split(".")[0] for name in runs[0]["modules"]} - {"fairseq_milk"})
    heavy = [name for name in foreign if name in UNWANTED]
    cpu = 1e3 * statistics.median(run["cpu"] for run in runs)
    checks = [
        Check("CPU time", cpu, Bar("<", 150), "ms"),
        Check("wall time", 1e3 * statistics.median(run["wall"] for run in runs), None, "ms"),
        Check("modules for plotting, SimulEval or text processing", len(heavy), Bar("<=", 0), ""),
    ]
    return Outcome(checks, {}, f"other packages that it imports: {', '.join(foreign) or 'none'}")


def measure_mathematics(size: Size) -> Outcome:
    outputs = [run_command(sys.executable, "-c", MATHEMATICS).output for _ in range(size.pick(3, 1))]
    cpu = 1e3 * statistics.median(float(output.splitlines()[-1]) for output in outputs)
    return Outcome([Check("CPU time", cpu, Bar("<", 100), "ms")], {}, "")


def measure_help(size: Size) -> Outcome:
    command = [sys.executable, "-m", "fairseq_milk.cli"]
    cpu = {
        option: 1e3 * statistics.median(run_command(*command, option).cpu for _ in range(size.pick(3, 1)))
        for option in ("--help", "--version")
    }
    return Outcome([Check(option, time, Bar("<", 500), "ms") for option, time in cpu.items()], {}, "")


ROWS: List[Row] = [
    Row("startup", "`import fairseq_milk`", "on top of `import fairseq`", measure),
    Row("startup-functional", "`import fairseq_milk.functional`", "on top of `import torch`", measure_mathematics),
    Row("startup-help", "`fairseq-milk --help`", "the whole command, CPU time", measure_help),
]
