"""fairseq's own commands, as they are installed, end with the sentence of a `UserError` and no traceback."""

from pathlib import Path
from typing import Any, List

import pytest

from tests.support.fairseq_commands import PLUGIN, ROOT, shell

PLAIN = ["--user-dir", PLUGIN, "--task", "simultaneous_translation"]


def hydra(data: Path, out: Path) -> List[Any]:
    config = ["--config-dir", ROOT / "examples" / "hydra", "--config-name", "milk_rnmt_tiny"]
    values = [f"common.user_dir={PLUGIN}", f"task.data={data}", f"checkpoint.save_dir={out}", f"hydra.run.dir={out}"]
    return ["fairseq-hydra-train", *config, *values]


@pytest.mark.parametrize("command", ["fairseq-train", "fairseq-generate", "fairseq-hydra-train"])
def test_a_missing_data_folder(command: str, tmp_path: Path) -> None:
    data, sentence = tmp_path / "data-bin", f"there is no data directory {tmp_path / 'data-bin'}: "
    arguments = {
        "fairseq-train": ["fairseq-train", data, *PLAIN, "--arch", "milk_rnmt_tiny", "--cpu", "--batch-size", 8],
        "fairseq-generate": ["fairseq-generate", data, *PLAIN, "--path", "model.pt", "--cpu"],
        "fairseq-hydra-train": hydra(data, tmp_path),
    }[command]
    finished = shell(*arguments)
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1].startswith(sentence), finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
