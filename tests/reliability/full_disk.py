"""A training on a full disk, in a file system of its own (needs root): the error, and the checkpoints that are left.

python -m tests.reliability.full_disk
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from fairseq_milk.host.checkpoint_file import read_checkpoint
from tests.support import fairseq_commands as commands
from tests.support.processes import outcome


def study(folder: Path, disk: Path) -> str:
    """Returns the last line on standard error; asserts that every checkpoint left on the disk is complete."""
    data = commands.make_corpus(folder)
    more = ["--save-interval-updates", 2, "--disable-validation"]
    stderr = folder / "stderr"
    arguments = commands.training(data, disk / "save", *more, max_update=200)
    assert outcome(lambda: commands.run("fairseq-train", *arguments), stderr, timeout=600) == 1
    left = sorted(disk.glob("save/*"))
    assert disk / "save" / "checkpoint_last.pt" in left and not list(disk.glob("save/*.tmp"))
    for path in left:
        read_checkpoint(str(path))
    return f"{stderr.read_text().splitlines()[-1]}\n{len(left)} checkpoints are left, all whole"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        disk = Path(name) / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
        try:
            print(study(Path(name), disk))
        finally:
            subprocess.run(["umount", str(disk)], check=True, stdout=sys.stderr)
