"""The time per token of the streaming session against that of an earlier commit, whose sources come from git."""

import io
import json
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Dict, List

from benchmarks.harness import ROOT, Bar, Check, NotMeasuredError, Outcome, Row, Size, run_command

EARLIER = "e45763e"
PROGRAM = """
import json, sys, time
import torch
from benchmarks.build import Shape, build_model
from benchmarks.decoding import OPTIONS
from fairseq_milk.generation import StreamingSession

words, hidden, tokens = map(int, sys.argv[1:])
torch.set_num_threads(1)
model = build_model("milk", Shape(B=1, J=0, words=words, hidden=hidden), energy_bias=5.0).eval()
source = torch.randint(4, words, (tokens,), generator=torch.Generator().manual_seed(1)).tolist()
for times in ([], []):  # the first stream allocates and loads
    session = StreamingSession(model, OPTIONS._replace(min_len=10**6))
    for token in source:
        start = time.process_time()
        session.push(token)
        times.append(1e3 * (time.process_time() - start))
print(json.dumps(times))
"""


def earlier_sources(folder: Path) -> Path:
    """The tree of the earlier commit, as far as the program needs it."""
    tree = folder / f"tree-{EARLIER}"
    if not tree.exists():
        command = ["git", "-C", str(ROOT), "archive", EARLIER, "fairseq_milk", "benchmarks"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            raise NotMeasuredError(f"git has no commit {EARLIER} here: fetch the whole history")
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(tree)
    return tree


def measure(size: Size) -> Outcome:
    """Each tree in processes of its own, which take turns; a token reads one source token and writes one."""
    trees = {"now": ROOT, EARLIER: earlier_sources(size.out)}
    arguments = size.pick((8000, 256, 300), (200, 32, 20))
    times: Dict[str, List[float]] = {name: [] for name in trees}
    for turn in range(size.pick(3, 1)):
        for name in sorted(trees, reverse=turn % 2 == 1):
            command = [sys.executable, "-c", PROGRAM, *arguments]
            output = run_command(*command, folder=trees[name], PYTHONPATH=str(trees[name])).output
            times[name] += json.loads(output.splitlines()[-1])
    figures = {
        name: {"p50 ms": statistics.median(ms), "p99 ms": sorted(ms)[int(0.99 * len(ms))]} for name, ms in times.items()
    }
    checks = [
        Check(
            f"now / {EARLIER}, {share}", figures["now"][f"{share} ms"] / figures[EARLIER][f"{share} ms"], Bar("<=", 0.6)
        )
        for share in ("p50", "p99")
    ]
    return Outcome(checks, figures, f"{len(times['now'])} tokens of each, CPU time of one thread")


ROWS: List[Row] = [
    Row("session-token", "a token of the streaming session, MILk", f"the same at commit {EARLIER}", measure)
]
