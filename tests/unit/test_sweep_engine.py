"""The engine of a sweep with commands that train nothing: what is kept, what is run again, failures and messages."""

import errno
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

import pytest

from fairseq_milk.console.durations import duration
from fairseq_milk.console.errors import RunError, UserError
from fairseq_milk.console.processes import start
from fairseq_milk.console.progress import Line
from fairseq_milk.console.version_info import source_version
from fairseq_milk.sweep.job import Job, lock, mend_checkpoints, progress, spent_before
from fairseq_milk.sweep.runs import Run, with_predecessors
from fairseq_milk.sweep.scheduler import run_all
from fairseq_milk.sweep.shell_scripts import slurm_script
from fairseq_milk.sweep.training_log import LogReader, Status, parse

INNER = 'now | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "%s", "dal": "4.5", "num_updates": "%d"}\n'


def note(run: Run, stage: int, code: int) -> List[str]:
    """A command that prints its name, records that it ran, writes its file and ends with the exit code."""
    made, ran = str((run.model, run.summary)[stage]), str(run.folder / "ran")
    script = f"""
import os, sys, zipfile
print("it runs")
open({ran!r}, "a").write({"tg"[stage]!r})
os.makedirs(os.path.dirname({made!r}), exist_ok=True)
zipfile.ZipFile({made!r}, "w").close()
sys.exit({code})"""
    return [sys.executable, "-ISc", script]


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> Dict[str, int]:
    """Exit codes of the trainings, by system; 0 unless it is set."""
    chosen: Dict[str, int] = {}

    def commands(run: Run) -> List[List[str]]:
        return [note(run, 0, chosen.get(run.system, 0)), note(run, 1, 0)]

    monkeypatch.setattr(Run, "commands", commands)
    return chosen


def make_run(out: Path, system: str, **changes: Any) -> Run:
    run = Run(system, "", 1, ["--max-update", "30"], ["--beam", "1"], "checkpoint_best.pt", out / "bin", "data-0", out)
    return replace(run, **changes)


def complete(*runs: Run, jobs: int = 2) -> str:
    stream = io.StringIO()
    failed = run_all(runs, jobs, Line(stream), poll=0.01)
    assert [run for run in with_predecessors(runs) if not run.is_complete()] == failed
    return stream.getvalue()


def ran(run: Run) -> str:
    """t for each training, g for each decoding."""
    return (run.folder / "ran").read_text()


def test_a_complete_run_is_used_again(codes: Dict[str, int], tmp_path: Path) -> None:
    runs = [make_run(tmp_path, system) for system in ("soft", "wait-3", "wait-4")]
    complete(*runs)
    assert "3 of 3 runs were trained and decoded before" in complete(*runs)
    assert [ran(run) for run in runs] == ["tg", "tg", "tg"]


@pytest.mark.parametrize(
    "changes, again",
    [
        ({"train": ["--max-update", "31"]}, "tg"),
        ({"seed": 1, "data_id": "data-1"}, "tg"),
        ({"generate": ["--beam", "2"]}, "g"),
        ({"test_id": "other"}, "g"),
        ({"cwd": Path("/")}, ""),
    ],
)
def test_other_settings_are_run_again_and_no_more_than_that(
    codes: Dict[str, int], tmp_path: Path, changes: Dict[str, Any], again: str
) -> None:
    old, new = make_run(tmp_path, "soft"), make_run(tmp_path, "soft", **changes)
    complete(old)
    mark = old.checkpoints / "mark"
    mark.touch()
    complete(new)
    assert ran(new) == "tg" + again
    assert new.is_complete() and old.is_complete() == (again == "")
    assert mark.exists() == ("t" not in again)


def test_another_model_to_start_from_is_another_training(codes: Dict[str, int], tmp_path: Path) -> None:
    first = make_run(tmp_path, "start")
    complete(make_run(tmp_path, "milk", before=first))
    for changes, again in (({"generate": ["--beam", "3"]}, ""), ({"checkpoint": "checkpoint_last.pt"}, "tg")):
        child = make_run(tmp_path, "milk", before=replace(first, **changes))
        before = ran(child)
        complete(child)
        assert ran(child) == before + again


def test_an_unfinished_run_keeps_its_checkpoints_and_not_its_results(codes: Dict[str, int], tmp_path: Path) -> None:
    run = make_run(tmp_path, "soft")
    complete(run)
    (run.folder / "done.json").unlink()
    (run.results / "generate-test.txt").write_text("half of it")
    complete(run)
    assert ran(run) == "tgg" and not (run.results / "generate-test.txt").exists()
    (run.folder / "trained.json").unlink()
    (run.folder / "done.json").unlink()
    (run.checkpoints / "mark").touch()
    complete(run)
    assert ran(run) == "tggtg" and (run.checkpoints / "mark").exists()


def test_a_model_in_the_place_of_one_that_was_removed_is_trained_to_its_end(
    codes: Dict[str, int], tmp_path: Path
) -> None:
    run = make_run(tmp_path, "soft")
    complete(run)
    run.model.unlink()
    codes["soft"] = 7  # after it has written a first checkpoint
    again = replace(run, generate=["--beam", "2"])
    complete(again)
    assert again.model.exists() and not again.is_trained()
    codes.clear()
    complete(again)
    assert ran(again) == "tgttg"


def test_a_failure_shows_its_log_and_the_others_go_on(codes: Dict[str, int], tmp_path: Path) -> None:
    codes["wait-3"] = 7
    runs = [make_run(tmp_path, "wait-3"), make_run(tmp_path, "soft")]
    said = complete(*runs, jobs=1)
    assert "    it runs\nwait-3-s1: " in said and "failed with exit code 7; the end of its log is above" in said
    assert runs[1].is_complete()


def test_a_command_that_leaves_nothing_has_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing = [sys.executable, "-ISc", ""]
    monkeypatch.setattr(Run, "commands", lambda run: [nothing, nothing])
    assert "has not written " in complete(make_run(tmp_path, "soft"))


def test_a_warm_start_comes_after_what_it_starts_from(codes: Dict[str, int], tmp_path: Path) -> None:
    soft = make_run(tmp_path, "soft")
    late = make_run(tmp_path, "late", before=soft)
    later = make_run(tmp_path, "later", before=late)
    assert with_predecessors([later, soft]) == [soft, late, later]
    codes["late"] = 1
    assert run_all([later], 2, Line(io.StringIO()), poll=0.01) == [late, later]
    codes.clear()
    complete(later)
    assert later.settings()["after"]["after"] == {**soft.training(), "checkpoint": "checkpoint_best.pt"}


def test_runs_that_wait_for_a_place_are_not_said_to_run_elsewhere(codes: Dict[str, int], tmp_path: Path) -> None:
    shown: List[str] = []

    class Watcher(Line):
        def show(self, parts: List[str]) -> None:
            shown.extend(parts)

    runs = [make_run(tmp_path, system) for system in ("soft", "wait-3", "wait-4")]
    assert run_all(runs, 1, Watcher(io.StringIO()), poll=0.01) == []
    assert "2 of 3 done" in shown and not [part for part in shown if "another process" in part]


def test_done_json_without_the_settings_is_ignored(tmp_path: Path) -> None:
    run = make_run(tmp_path, "soft")
    run.results.mkdir(parents=True)
    run.summary.touch()
    for text in ("", "{", "[]", "{}", '{"settings": {}}'):
        (run.folder / "done.json").write_text(text)
        assert not run.is_complete()
    (run.folder / "done.json").write_text(json.dumps({"settings": run.settings()}))
    assert run.is_complete()


def test_a_run_of_another_process_is_waited_for(codes: Dict[str, int], tmp_path: Path) -> None:
    """A run of another process is used if that process completes it, and taken over if that process ends."""
    used, taken = make_run(tmp_path, "used"), make_run(tmp_path, "taken")
    complete(used)
    done = (used.folder / "done.json").read_text()
    (used.folder / "done.json").unlink()
    locks = [lock(used), lock(taken)]
    assert all(locks) and lock(used) is None
    shown = 0

    class Watcher(Line):
        def show(self, parts: List[str]) -> None:
            nonlocal shown
            shown += any("is run by another process" in part for part in parts)
            if shown == 3:
                (used.folder / "done.json").write_text(done)
                for held in locks:
                    assert held is not None
                    held.close()

    assert run_all([used, taken], 1, Watcher(io.StringIO()), poll=0.01) == []
    assert shown == 3 and (ran(used), ran(taken)) == ("tg", "tg")


def test_interruption_ends_the_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sleep = [sys.executable, "-ISc", "import time; time.sleep(600)"]
    monkeypatch.setattr(Run, "commands", lambda run: [sleep, sleep])
    jobs: List[Job] = []

    def describe(job: Job) -> str:
        jobs.append(job)
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, "describe", describe)
    runs = [make_run(tmp_path, "soft"), make_run(tmp_path, "wait-3")]
    with pytest.raises(KeyboardInterrupt):
        run_all(runs, 2, Line(io.StringIO()))
    assert jobs[0].process.poll() is not None
    assert not any(run.is_complete() for run in runs)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_a_command_does_not_outlive_the_sweep(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        process = start([sys.executable, "-ISc", "import time; time.sleep(600)"], tmp_path / "log", threads=1)
        (tmp_path / "pid").write_text(str(process.pid))
        os._exit(0)
    os.waitpid(pid, 0)
    status = Path("/proc") / (tmp_path / "pid").read_text() / "status"
    end = time.monotonic() + 60
    while status.exists() and "(zombie)" not in status.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_checkpoints_that_were_cut_off(tmp_path: Path) -> None:
    names = ("checkpoint_1_10.pt", "checkpoint_2_200.pt", "checkpoint_2_30.pt", "checkpoint_best.pt")
    for name in (*names, "checkpoint.best_loss_3.1234.pt"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("data", name * 100)
    whole = (tmp_path / "checkpoint_2_200.pt").read_bytes()
    (tmp_path / "checkpoint_last.pt").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "checkpoint_best.pt").write_bytes(whole[:10])
    mend_checkpoints(tmp_path)
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == whole
    assert not (tmp_path / "checkpoint_best.pt").exists()


def test_a_folder_that_cannot_be_locked_is_an_error(tmp_path: Path) -> None:
    run, nothing = make_run(tmp_path, "soft"), OSError(errno.ENOSYS, "Function not implemented")
    with mock.patch("fcntl.flock", side_effect=nothing), pytest.raises(RunError, match="cannot be locked"):
        lock(run)


def test_the_time_of_earlier_attempts_is_added(codes: Dict[str, int], tmp_path: Path) -> None:
    run = make_run(tmp_path, "soft")
    assert spent_before(run) == 0
    complete(run)
    (run.folder / "clock.json").write_text('{"spent": 100, "since": 1000}')
    os.utime(run.folder / "train.log", (1060, 1060))
    assert spent_before(run) == 160
    (run.folder / "done.json").unlink()
    (run.folder / "trained.json").unlink()
    complete(run)
    trained = json.loads((run.folder / "trained.json").read_text())
    assert 160 <= trained["seconds"] < 260 and trained["commit"] == source_version()


def test_the_source_is_named_by_its_commit(tmp_path: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True)
    if head.returncode == 0:
        assert source_version().split("+")[1].split("-")[0] == head.stdout[:12]


# ---- what is shown ----------------------------------------------------------------------------------------------


def test_the_log_is_followed_from_where_it_is(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(INNER % (9.0, 5))
    reader = LogReader(log)
    assert reader.poll() is None
    with open(log, "a") as file:
        file.write("noise\n" + INNER % (3.5, 10) + (INNER % (3.25, 20))[:40])
        file.flush()
        assert reader.poll() == Status(10, 0.5, 3.5, 4.5)
        file.write((INNER % (3.25, 20))[40:])
        file.flush()
        assert reader.poll() == Status(20, 0.5, 3.25, 4.5)
    assert reader.first is not None and reader.first[0].update == 10


@pytest.mark.parametrize("line", ["", "train_inner", "| train_inner | {", '| train_inner | {"loss": "1"}'])
def test_other_lines_of_a_log_are_passed_over(line: str) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(
    "limits, share",
    [("--max-update 40", 0.25), ("--max-epoch 4", 0.5), ("--max-update 40 --max-epoch 4", 0.5), ("", 0.0)],
)
def test_the_share_of_a_training_that_is_done(tmp_path: Path, limits: str, share: float) -> None:
    assert progress(make_run(tmp_path, "soft", train=limits.split()), Status(10, 2.0, 1.0, 1.0)) == share


@pytest.mark.parametrize("seconds, words", [(0, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (7500, "2 h 5 min")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


DAMAGED = ["", "[]", "7", '"x"', "{", "{}", '{"spent": []}', '{"spent": 1e400, "since": 0}', "[" * 100_000, "\x00"]
DAMAGED += ['{"spent": "x", "since": 1}', '{"settings": 3, "seconds": {}}', '{"settings": {"train": 3}}', "NaN"]


@pytest.mark.parametrize("name", ["settings.json", "trained.json", "done.json", "clock.json"])
@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_files_of_a_run_count_as_missing(codes: Dict[str, int], tmp_path: Path, name: str, text: str) -> None:
    """The damaged files are made again; a model is never removed because of them."""
    run = make_run(tmp_path, "a")
    run.folder.mkdir(parents=True)
    (run.folder / "train.log").write_text("")
    (run.folder / name).write_text(text)
    assert not run.is_complete() and not run.is_trained() and run.other_training() == ""
    assert 0 <= spent_before(run) < 1e9
    complete(run)
    assert run.is_complete()


def test_clocks_that_are_ahead(tmp_path: Path) -> None:
    """Time stamps in the future, of a file server or from before the clock was corrected: no training took years."""
    run = make_run(tmp_path, "a")
    run.folder.mkdir(parents=True)
    (run.folder / "train.log").write_text("")
    now = time.time()
    for since, modified, least, most in (
        (now - 60, now + 1e9, 60, 120),
        (now + 1e9, now, 0, 0),
        (now - 60, now - 1e9, 0, 0),
    ):
        (run.folder / "clock.json").write_text(json.dumps({"spent": 0, "since": since}))
        os.utime(run.folder / "train.log", (modified, modified))
        assert least <= spent_before(run) <= most


FIGURES = ["7", "[1]", "null", '{"num_updates": 1e999, "update": 1, "loss": 1}', "[" * 100_000, '{"num_updates": []}']
FIGURES += ['{"num_updates": 1, "update": NaN, "loss": 1}', '{"num_updates": 1, "update": 1, "loss": {}}']


@pytest.mark.parametrize("figures", FIGURES, ids=range(len(FIGURES)))
def test_damaged_lines_of_a_log_are_passed_over(figures: str) -> None:
    assert parse(f"x | train_inner | {figures}") is None


def test_before_the_first_figures_it_says_when_they_come(tmp_path: Path) -> None:
    job = Job.__new__(Job)
    log = tmp_path / "train.log"
    job.run, job.stage, job.reader = make_run(tmp_path, "a", train=["--log-interval", "50"]), 0, LogReader(log)
    assert job.describe() == "a-s1 starting"
    log.write_text("2026-11-17 | INFO | fairseq_cli.train | Start iterating over samples\n")
    assert job.describe() == "a-s1 training, figures from update 50 on"


def test_a_control_character_stays_out_of_a_slurm_script(tmp_path: Path) -> None:
    spec = mock.Mock(slurm={}, name="sweep")
    for script, out in ((Path("a\nevil"), "out"), (Path("a"), "out\nevil"), (Path("a\x1b[2J"), "out")):
        with pytest.raises(UserError, match="cannot be written into a SLURM script"):
            slurm_script([make_run(tmp_path, "a")], spec, ["fairseq-milk", "sweep", out], script)
