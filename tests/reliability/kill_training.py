"""A training that is killed repeatedly ends with the parameters of an uninterrupted one.

python -m tests.reliability.kill_training --kills 20 [--arch milk_transformer_tiny]
"""

import argparse
import random
import shutil
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List, Optional
from unittest import mock

import torch

from fairseq_milk.host.checkpoint_file import read_checkpoint
from tests.support import fairseq_commands as commands
from tests.support.processes import child, half_and_killed, outcome

UPDATES, SAVE_EVERY = 12, 2
WRITES = ("torch.save", "shutil.copyfile")  # of the checkpoint itself, and to checkpoint_best.pt and checkpoint_last.pt


def arguments(data: Path, save_dir: Path, arch: str) -> List[str]:
    """A training with everything that has a state: dropout, noise and its ramp, the guard, schedules, validation."""
    schedule = "--lr-scheduler rnmt_plus --lr-replicas 2 --lr-warmup 2 --lr-decay-start 12 --lr-decay-end 30"
    more = f"--latency-weight 0.1 --latency-ramp 5 --dropout 0.2 --noise-ramp 6 --save-interval-updates {SAVE_EVERY}"
    more += " --keep-interval-updates 1"
    return commands.training(data, save_dir, *schedule.split(), *more.split(), max_update=UPDATES, arch=arch)


class Killer:
    """Trains in one folder and kills the training.  whole: the parameters of an uninterrupted training."""

    def __init__(self, folder: Path, arch: str = commands.RNMT) -> None:
        self.folder, self.save_dir, self.arch = folder, folder / "killed", arch
        self.data = commands.make_corpus(folder / "data", valid_size=8)
        start = time.monotonic()
        # In this process, so that the forked children have its imports.
        self._run(folder / "whole")
        self.seconds = time.monotonic() - start
        self.whole = commands.parameters(folder / "whole" / "checkpoint_last.pt")
        self.kills = self.in_a_write = self.rounds = 0
        self.resumed_at: List[int] = []  # the number of updates in the checkpoint after each kill

    def at(self, seconds: float) -> None:
        """Kill the training from outside after so many seconds, unless it has ended by then."""
        with child(lambda: self._run(self.save_dir), self._stderr()) as run:
            run.join(seconds)
            run.kill()
            run.join()
        self._examine(run.exitcode)

    def in_write(self, function: str, after: int) -> None:
        """Kill the training when the (after + 1)-th call of this function has written half of its file."""
        before = self.kills
        self._examine(self._train(self.save_dir, function, after))
        self.in_a_write += self.kills - before

    def finish(self) -> None:
        """Train to the end without a kill."""
        assert self._train(self.save_dir) == 0, self._log()

    def different(self) -> Optional[str]:
        """The name of a parameter that differs from the uninterrupted training, or None."""
        return commands.different(commands.parameters(self.save_dir / "checkpoint_last.pt"), self.whole)

    def updates(self) -> int:
        """The number of updates in the checkpoint that a rerun would start from."""
        last = self.save_dir / "checkpoint_last.pt"
        return int(torch.load(last)["optimizer_history"][-1]["num_updates"]) if last.exists() else 0

    def _run(self, save_dir: Path) -> None:
        commands.run("fairseq-train", *arguments(self.data, save_dir, self.arch))

    def _train(self, save_dir: Path, function: Optional[str] = None, after: int = 0) -> int:
        def work() -> None:
            with ExitStack() as stack:
                if function is not None:
                    module, name = function.split(".")
                    original = getattr({"torch": torch, "shutil": shutil}[module], name)
                    stack.enter_context(mock.patch(function, half_and_killed(original, after)))
                self._run(save_dir)

        return outcome(work, self._stderr(), timeout=600)

    def _examine(self, exitcode: int) -> None:
        """Check that every checkpoint is complete."""
        assert exitcode in (0, -signal.SIGKILL), self._log()
        self.kills += exitcode != 0
        for path in self.save_dir.glob("*.pt"):
            read_checkpoint(str(path))
        self.resumed_at.append(self.updates())

    def _stderr(self) -> Path:
        return self.folder / "stderr"

    def _log(self) -> str:
        return self._stderr().read_text()[-3000:]


def study(folder: Path, kills: int, seed: int, arch: str) -> Dict[str, Any]:
    """Half of the kills at random moments, half in the middle of a write; a training ends after about five."""
    draw, killer = random.Random(seed), Killer(folder, arch)
    different: List[str] = []
    while killer.kills < kills:
        before = killer.kills
        while killer.kills < min(before + 5, kills):
            if killer.kills % 2:
                killer.in_write(draw.choice(WRITES), after=draw.randrange(4))
            else:
                killer.at(draw.uniform(0.0, killer.seconds / 2))
            if killer.updates() == UPDATES:
                break
        killer.finish()
        different += filter(None, [killer.different()])
        shutil.rmtree(killer.save_dir)
        killer.rounds += 1
    figures = {name: getattr(killer, name) for name in ("kills", "in_a_write", "rounds", "resumed_at")}
    return {**figures, "different": different}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", choices=list(commands.SIZES), default=commands.RNMT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        print(study(Path(name), options.kills, options.seed, options.arch))
