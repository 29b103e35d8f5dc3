"""Data parallel, with real processes: gloo ranks on CPU through the script that examples/README.md gives."""

import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch

from tests import fairseq_commands as commands

SCRIPT = commands.ROOT / "scripts" / "train_cpu_ranks.sh"
WITNESS = str(Path(__file__).parent / "rank_witness")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return commands.make_corpus(tmp_path_factory.mktemp("distributed"))


def arguments(data: Path, save_dir: Path, max_update: int, *more: Any) -> List[str]:
    """MILk with lambda > 0.  No noise and no dropout: fairseq gives every rank the same seed, one process draws on."""
    quiet = ["--noise", 0, "--dropout", 0, "--latency-weight", 0.3, "--decoder-layers", 2, "--disable-validation"]
    arguments = commands.training(data, save_dir, *quiet, *more, max_update=max_update)
    return [a.replace("simultaneous_translation", "witnessed_translation").replace(commands.PLUGIN, WITNESS) for a in arguments]


def witnesses(stdout: str) -> Dict[int, Dict[int, str]]:
    """update -> rank -> digest of all parameters."""
    found: Dict[int, Dict[int, str]] = {}
    for update, rank, digest in re.findall(r"witness update=(\d+) rank=(\d+) parameters=(\w+)", stdout):
        found.setdefault(int(update), {})[int(rank)] = digest
    return found


def test_two_ranks_agree_with_each_other_and_with_one_process(data: Path, tmp_path: Path) -> None:
    """Interrupted after two updates and resumed, so that what the ranks load is tested too."""
    seen: Dict[int, Dict[int, str]] = {}
    for max_update in (2, 4):
        finished = commands.shell(SCRIPT, 2, *arguments(data, tmp_path / "ranks", max_update))
        assert finished.returncode == 0, finished.stderr[-3000:]
        assert "training on 2 devices" in finished.stdout
        seen.update(witnesses(finished.stdout))
    assert sorted(seen) == [1, 2, 3, 4]
    for update, ranks in seen.items():
        assert sorted(ranks) == [0, 1] and ranks[0] == ranks[1], f"the ranks differ after update {update}"
    commands.run("fairseq-train", *arguments(data, tmp_path / "one", 4, "--update-freq", 2))
    two, one = (commands.parameters(tmp_path / name / "checkpoint_last.pt") for name in ("ranks", "one"))
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=0, atol=1e-7, msg=name)
    start = commands.parameters(tmp_path / "ranks" / "checkpoint_last.pt")["decoder.attention.head.r"]
    assert float(start) != -1.0, "nothing has been learned"


def test_torchrun_alone_is_refused(data: Path, tmp_path: Path) -> None:
    """It would train two models of their own, in one folder, and exit with success."""
    torchrun = ["torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc_per_node", 2, "--no-python"]
    train = ["fairseq-train", *commands.training(data, tmp_path, "--distributed-backend", "gloo", "--distributed-no-spawn")]
    finished = commands.shell(*torchrun, *train)
    assert finished.returncode != 0 and not list(tmp_path.glob("*.pt"))
    assert "torchrun started 2 processes but fairseq was told of one" in finished.stderr
    assert "add --distributed-world-size 2" in finished.stderr


def test_the_script_says_how_it_is_used() -> None:
    finished = commands.shell(SCRIPT, "two")
    assert finished.returncode == 2 and finished.stderr.startswith("usage: scripts/train_cpu_ranks.sh RANKS DATA")
