"""Which modules are imported when, and what importing changes, tested in separate processes."""

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


@pytest.fixture(scope="module")
def mathematics() -> Dict[str, Any]:
    """One process that imports the mathematics, module by module, and then fairseq."""
    program = f"""
import importlib, json, sys
import torch
allowed = getattr(torch.serialization, "get_safe_globals", list)  # from torch 2.4 on
before, loaded = allowed(), {{}}
for module in {MATHEMATICS}:
    importlib.import_module(module)
    loaded[module] = sorted(sys.modules)
from fairseq import checkpoint_utils
functions = [checkpoint_utils.load_checkpoint_to_cpu, checkpoint_utils.torch_persistent_save, sys.excepthook]
print(json.dumps({{"loaded": loaded, "same": allowed() == before, "modules": [f.__module__ for f in functions]}}))
"""
    found: Dict[str, Any] = python(program)
    return found


@pytest.mark.parametrize("module", MATHEMATICS)
def test_the_mathematics_imports_no_fairseq(module: str, mathematics: Dict[str, Any]) -> None:
    loaded = mathematics["loaded"][module]
    assert module in loaded
    assert not {"fairseq", "hydra", "omegaconf", "matplotlib", "fairseq_milk.host.registration"} & set(loaded)


def test_the_mathematics_patches_nothing(mathematics: Dict[str, Any]) -> None:
    assert mathematics["same"]
    assert mathematics["modules"] == ["fairseq.checkpoint_utils", "fairseq.checkpoint_utils", "sys"]


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


def test_verbs_that_work_on_files_import_no_fairseq(tmp_path: Path) -> None:
    """score, compare, plot and report are run on recorded results."""
    results = ROOT / "examples" / "multi30k" / "results"
    log, table, picture, page = results / "milk.jsonl", results / "results.csv", tmp_path / "a.svg", tmp_path / "a.html"
    commands = [
        ["score", str(log), "--bootstrap", "0"],
        ["compare", f"a={log}", f"b={results / 'wait-k.jsonl'}", "a", "b", "--bootstrap", "10"],
        ["plot", "plane", str(table), "--subset", "test", "--out", str(picture)],
        ["report", str(table), "--subset", "test", "--out", str(page)],
    ]
    program = f"""
import json, sys
from fairseq_milk.cli import main
codes = [main(command) for command in {commands}]
print(json.dumps([codes, [name for name in ("fairseq", "hydra") if name in sys.modules]]))
"""
    assert python(program) == [[0, 0, 0, 0], []]
    assert picture.exists() and page.exists()


def test_importing_the_plugin_is_quiet_and_does_not_import_matplotlib() -> None:
    """fairseq's advice to install tensorboardX is suppressed, later messages of its modules are not."""
    code = (
        "import logging, sys, fairseq_milk, fairseq_milk.analysis, fairseq_milk.cli\n"
        "fairseq_milk.register()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "logging.getLogger('fairseq.tasks.text_to_speech').info('later')"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    said = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    assert said.stdout == "" and "tensorboardX" not in said.stderr and "later" in said.stderr
