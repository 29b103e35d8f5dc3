"""What is imported when, and what importing changes: looked at in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

ROOT = Path(__file__).resolve().parents[2]
MATHEMATICS = ["fairseq_milk", "fairseq_milk.functional", "fairseq_milk.attention"]
CPU_LIMIT = 0.5  # seconds, for `fairseq-milk --help`


def python(program: str) -> Any:
    """What a program prints last, as JSON."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def loaded_after(program: str) -> List[str]:
    return python(f"{program}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")


@pytest.mark.parametrize("module", MATHEMATICS)
def test_the_mathematics_imports_no_fairseq(module: str) -> None:
    loaded = loaded_after(f"import {module}")
    assert module in loaded
    assert not {"fairseq", "hydra", "omegaconf", "matplotlib", "fairseq_milk.host.registration"} & set(loaded)


def test_the_mathematics_patches_nothing() -> None:
    program = """
import torch
allowed = getattr(torch.serialization, "get_safe_globals", list)  # from torch 2.4 on
before = allowed()
import fairseq_milk.functional, fairseq_milk.attention
from fairseq import checkpoint_utils
import json, sys
functions = [checkpoint_utils.load_checkpoint_to_cpu, checkpoint_utils.torch_persistent_save, sys.excepthook]
print(json.dumps([allowed() == before, [f.__module__ for f in functions]]))
"""
    same, modules = python(program)
    assert same and modules == ["fairseq.checkpoint_utils", "fairseq.checkpoint_utils", "sys"]


@pytest.mark.parametrize(
    "program",
    [
        "import fairseq, fairseq_milk",
        "import fairseq_milk; fairseq_milk.register()",
        "import fairseq_milk.functional, fairseq, fairseq_milk; fairseq_milk.register(); fairseq_milk.register()",
    ],
)
def test_everything_is_registered(program: str) -> None:
    names = """
import json
from fairseq import checkpoint_utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.optim.lr_scheduler import LR_SCHEDULER_REGISTRY
from fairseq.scoring import SCORER_REGISTRY
from fairseq.tasks import TASK_REGISTRY
classes = [CRITERION_REGISTRY["latency_augmented_label_smoothed_cross_entropy"], ARCH_MODEL_REGISTRY["milk_rnmt_small"],
           OPTIMIZER_REGISTRY["rnmt_adam"], LR_SCHEDULER_REGISTRY["rnmt_plus"], SCORER_REGISTRY["simultaneous"],
           TASK_REGISTRY["simultaneous_translation"], checkpoint_utils.load_checkpoint_to_cpu]
print(json.dumps([thing.__module__.split(".")[0] for thing in classes]))
"""
    assert python(program + names) == ["fairseq_milk"] * 7


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["score", "--help"], ["plot", "--help"]])
def test_the_command_answers_at_once(arguments: List[str]) -> None:
    """Help and version import nothing heavy; a verb that works on files imports no fairseq."""
    program = f"""
import json, sys, time
sys.argv = ["fairseq-milk", *{arguments!r}]
from fairseq_milk.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
print(json.dumps({{"cpu": time.process_time(), "modules": sorted(sys.modules)}}))
"""
    answer: Dict[str, Any] = python(program)
    assert not {"fairseq", "hydra", "omegaconf"} & set(answer["modules"])
    if len(arguments) == 1:
        assert not {"torch", "matplotlib", "sacrebleu"} & set(answer["modules"])
        assert answer["cpu"] < CPU_LIMIT


@pytest.mark.parametrize("verb", ["score", "plot", "report"])
def test_verbs_that_work_on_files_import_no_fairseq(verb: str) -> None:
    assert "fairseq" not in loaded_after(f"import fairseq_milk.cli.{verb}")
