"""The demo script from end to end with a tiny training: interrupted, finished and run again."""

import fcntl
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, List

import numpy as np
import pytest
from PIL import Image

from examples.verb_final import corpus, demo, recipe
from examples.verb_final.language import KINDS
from fairseq_milk.cli.serve import name_models, read_examples
from fairseq_milk.live import load
from fairseq_milk.sweep import scheduler
from tests.support.stand_in_sweep import other_model

ROOT = Path(__file__).resolve().parents[2]
IN_VENV = Path(sys.prefix) == ROOT / ".venv"  # which the scripts use: they have nothing to set up
DEMO = ["bash", "scripts/demo.sh"] if IN_VENV else [sys.executable, "-m", "examples.verb_final.demo"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHON": sys.executable}
PATIENCE = 600  # seconds, on a busy machine
RUNS = [f"{key}-s1" for key in recipe.DEMO_SYSTEMS]


def start(out: Path) -> "subprocess.Popen[str]":
    """Start the demo with the default action of SIGINT."""
    return subprocess.Popen(
        [*DEMO, "--fast", "--out", str(out)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def interrupt_when(demo: "subprocess.Popen[str]", ready: Callable[[], bool]) -> str:
    """Interrupt the demo as soon as it is ready, and return its output."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert demo.poll() is None, demo.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.02)
    demo.send_signal(signal.SIGINT)
    said = demo.communicate(timeout=PATIENCE)[0]
    assert demo.returncode == 130, said
    assert said.endswith("demo: interrupted; run it again to continue\n")
    return said


def finish(demo: "subprocess.Popen[str]") -> str:
    said = demo.communicate(timeout=PATIENCE)[0]
    assert demo.returncode == 0, said
    return said


def still_running(folder: Path) -> bool:
    """The commands of a run hold its lock as long as they live."""
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except OSError:
            return True


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def interrupted(out: Path) -> List[bool]:
    """Interrupted twice: while the data are made, and when both trainings have saved something."""
    interrupt_when(start(out), lambda: any(out.glob(".data-*/preprocess.log")))
    assert [path.name for path in out.iterdir()] == [".lock"], "half-made data"
    last = [out / name / "checkpoints" / "checkpoint_last.pt" for name in RUNS]
    interrupt_when(start(out), lambda: any(path.exists() for path in last))
    return [path.exists() for path in last]


@pytest.fixture(scope="module")
def said(out: Path, interrupted: List[bool]) -> str:
    assert not any(still_running(out / name) for name in RUNS), "a command outlived the interruption"
    assert not any((out / name / "done.json").exists() for name in RUNS)
    return finish(start(out))


def test_an_interrupted_training_goes_on(out: Path, interrupted: List[bool], said: str) -> None:
    for name, saved in zip(RUNS, interrupted):
        log = (out / name / "train.log").read_text()
        assert ("Loaded checkpoint" in log) == saved
        assert (out / name / "done.json").exists()
    assert any(interrupted)


def test_progress_and_the_table_are_shown(out: Path, said: str) -> None:
    assert f"{RUNS[0]} " in said and " of 2 done" in said
    labels = [recipe.systems()[key].label for key in recipe.DEMO_SYSTEMS]
    lines = said.splitlines()
    (heading,) = [line for line in lines if line.startswith("system ")]
    assert all(word in heading for word in ("BLEU", "exact %", "DAL", "AL", "AP", *KINDS))
    for label in ("best possible (oracle)", *labels):
        assert sum(line.startswith(label + "  ") for line in lines) == 1
    (oracle,) = [line for line in lines if line.startswith("best possible")]
    assert "  100.0    100.0  " in oracle
    assert lines[IN_VENV] == f"starting fairseq; everything goes to {out}", "the first line of the program"
    assert "INFO" not in said and "DEBUG" not in said


def test_the_memory_of_all_processes_is_printed(said: str) -> None:
    told = said.splitlines()[-2]
    found = re.fullmatch(r"finished in .*, in at most (\d+) MB: (\d+) here and 2 commands of up to (\d+) at once", told)
    assert found is not None, told
    total, own, command = map(int, found.groups())
    assert total == own + 2 * command and min(own, command) > 100, "less than fairseq needs"


def test_it_ends_with_the_command_that_serves_both_models(out: Path, said: str) -> None:
    prefix = "to see both translate while you type: "
    last = said.splitlines()[-1]
    assert last.startswith(prefix)
    command = shlex.split(last[len(prefix) :])
    assert Path(ROOT / command[0]).name == "fairseq-milk" and command[1] == "serve"
    models, examples = name_models(command[2:4]), command[5]
    data = command[7] if command[6:7] == ["--data"] else None  # checkpoints, of a torch that cannot export
    assert list(models) == list(recipe.DEMO_SYSTEMS)
    sentences = read_examples(examples, words=20)
    assert len(sentences) >= 3
    for name, translator in ((name, load(path, data)) for name, path in models.items()):
        assert translator.mechanism == {"milk-0.12": "milk", "wait-4": "waitk"}[name]
        assert translator.session().push(sentences[0]) is not None


@pytest.mark.parametrize("name", ["plane", "schedule-verb-final", "schedule-verb-second"])
def test_the_pictures_show_something(out: Path, said: str, name: str) -> None:
    assert str(out / f"{name}.png") in said
    with Image.open(out / f"{name}.png") as image:
        grey = np.asarray(image.convert("L"))
    assert min(grey.shape) > 200 and (grey < 200).mean() > 0.005
    assert (out / f"{name}.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_no_incomplete_file_is_left(out: Path, said: str) -> None:
    assert not [path for path in out.rglob("*") if path.name.endswith((".partial", ".tmp"))]
    data = [path.name for path in out.iterdir() if "data-" in path.name]
    assert len(data) == 1 and data[0].startswith("data-")


def test_a_second_run_uses_finished_results(out: Path, said: str) -> None:
    before = [(out / name / "done.json").stat().st_mtime_ns for name in RUNS]
    again = finish(start(out))
    assert "2 of 2 runs were trained and decoded before" in again
    assert [(out / name / "done.json").stat().st_mtime_ns for name in RUNS] == before
    assert again[again.index("\nsystem ") : again.index("\nfinished")] in said


@pytest.mark.parametrize("seconds", [0, 2])
def test_ctrl_c_while_fairseq_is_imported(seconds: float, tmp_path: Path) -> None:
    demo = start(tmp_path / "out")
    assert demo.stdout is not None
    while not demo.stdout.readline().startswith("starting fairseq"):
        assert demo.poll() is None
    time.sleep(seconds)
    demo.send_signal(signal.SIGINT)
    said = demo.communicate(timeout=PATIENCE)[0]
    assert (demo.returncode, said) == (130, "demo: interrupted; run it again to continue\n")
    assert not (tmp_path / "out").exists()


def test_the_fast_demo_does_not_touch_the_models_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    started: List[Path] = []

    def begin(out: Path, scale: recipe.Scale) -> int:
        started.append(out)
        return 0

    monkeypatch.setattr(demo, "demo", begin)
    assert demo.main([]) == demo.main(["--fast"]) == 0
    assert started == [ROOT / "demo", ROOT / "demo-fast"]


def test_replacing_a_model_of_other_settings_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other_model(tmp_path / RUNS[0])
    corpus.folder_of(tmp_path, corpus.draw_files(recipe.FAST.sizes)).mkdir()
    monkeypatch.setattr(scheduler, "run_all", lambda runs, jobs, line: runs)
    assert demo.demo(tmp_path, recipe.FAST) == 1
    assert capsys.readouterr().out == f"{tmp_path / RUNS[0]} was trained with other settings: it is trained again\n"


@pytest.mark.skipif(not IN_VENV, reason="run.sh would make .venv")
def test_the_script_of_the_study() -> None:
    words = ["bash", "examples/verb_final/run.sh", "--list", "--only", "milk-[24]"]
    listed = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()[1:]] == ["milk-2", "milk-4"]
    assert "--latency-weight 4 " in listed.splitlines()[-1]
