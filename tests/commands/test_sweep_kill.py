"""A sweep that is killed (SIGKILL) at random moments: the rerun completes it, and no row comes from an unfinished run.

`SWEEP_KILLS=100 pytest tests/commands/test_sweep_kill.py -s` kills more often and prints the progress at each kill.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from fairseq_milk import cli
from fairseq_milk.scoring.table import Result, read_results
from tests.support.fairseq_commands import CRITERION
from tests.support.fake_fairseq import install, write_data

KILLS = int(os.environ.get("SWEEP_KILLS", "6"))
RUNS = 5
FILE = f"""
data: data-bin
train: {{arch: milk_rnmt_tiny, criterion: {CRITERION}, max-update: 12}}
systems:
  start: {{}}
  milk: {{after: start, grid: {{latency-weight: [0.1, 0.2]}}}}
  wait-k: {{train: {{attention: waitk}}, grid: {{wait-k: [1, 3]}}}}
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the commands with the sweep")


def start_sweep(folder: Path, out: Path) -> int:
    """Start the command in a process forked from this one, which has imported fairseq."""
    pid = os.fork()
    if pid == 0:
        with open(folder / "said", "a") as sys.stdout:
            sys.stderr = sys.stdout
            code = 99
            try:
                code = cli.main(["sweep", str(folder / "sweep.yaml"), "--out", str(out), "--jobs", "2"])
            finally:
                sys.stdout.flush()
                os._exit(code)
    return pid


def rows(out: Path) -> Dict[str, Result]:
    """By name, without the times and the place."""
    if not (out / "results.csv").exists():
        return {}
    same: Dict[str, Any] = {"train_seconds": 0.0, "generate_seconds": 0.0, "checkpoint": "", "log": ""}
    return {f"{row.system} {row.setting}": row._replace(**same) for row in read_results(out / "results.csv")}


def test_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "bin", monkeypatch, pause=0.03)
    write_data(tmp_path / "data-bin")
    (tmp_path / "sweep.yaml").write_text(FILE)
    began = time.monotonic()
    assert os.waitpid(start_sweep(tmp_path, tmp_path / "whole"), 0)[1] == 0, (tmp_path / "said").read_text()
    whole, length = rows(tmp_path / "whole"), time.monotonic() - began
    assert len(whole) == RUNS

    draw, out = random.Random(7), tmp_path / "killed"
    seen: List[int] = []
    for kill in range(KILLS):
        pid = start_sweep(tmp_path, out)
        time.sleep(draw.uniform(0.05, 0.8) * length)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        found = rows(out)
        assert found.items() <= whole.items(), "a row of a run that was not finished"
        seen.append(len(found))
        if len(found) == RUNS:  # begin again
            out = tmp_path / f"killed-{kill}"
    _, status = os.waitpid(start_sweep(tmp_path, out), 0)
    assert status == 0, (tmp_path / "said").read_text()
    assert rows(out) == whole
    print(f"{KILLS} kills within {length:.1f} s of a sweep; rows each time: {seen}")
