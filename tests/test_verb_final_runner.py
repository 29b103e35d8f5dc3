"""The runner of examples/verb_final with commands that do nothing: what is kept, what is run again, how it fails."""

import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any, Dict, List

import pytest

from examples.verb_final import corpus, recipe, runner, study, tables
from examples.verb_final.commands import RunError
from examples.verb_final.progress import Line, LogReader, Status, duration, parse

INNER = '2026-01-01 | INFO | train_inner | {"epoch": 1, "loss": "%s", "dal": "4.5", "num_updates": "%d"}\n'


def write_log(folder: Path, code: int = 0) -> List[str]:
    """A command that says what it does, notes in its folder that it ran, and ends with the code."""
    script = f"import sys; print('it runs'); open({str(folder / 'ran')!r}, 'a').write('x'); sys.exit({code})"
    return [sys.executable, "-c", script]


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> Dict[str, int]:
    """Exit codes of the trainings, by system; 0 unless it is set."""
    chosen: Dict[str, int] = {}

    def commands(run: runner.Run) -> List[List[str]]:
        return [write_log(run.folder, chosen.get(run.system.key, 0)), write_log(run.folder)]

    monkeypatch.setattr(runner.Run, "commands", commands)
    return chosen


def make_runs(out: Path, *keys: str, seed: int = 1, **options: int) -> List[runner.Run]:
    scale = recipe.Scale(recipe.FAST.sizes, {**recipe.FAST.options, **options})
    return [runner.Run(recipe.systems()[key], seed, scale, out / "data-0", out) for key in keys]


def run_all(runs: List[runner.Run], jobs: int = 2) -> str:
    stream = io.StringIO()
    failed = runner.run_all(runs, jobs, Line(stream), poll=0.01)
    assert [run for run in runs if not run.is_complete()] == failed
    return stream.getvalue()


def times(run: runner.Run) -> int:
    return len((run.folder / "ran").read_text())


def test_a_complete_run_is_used_again(codes: Dict[str, int], tmp_path: Path) -> None:
    runs = make_runs(tmp_path, "soft", "wait-3", "wait-4")
    run_all(runs)
    assert "3 of 3 systems were trained and decoded before" in run_all(runs)
    assert [times(run) for run in runs] == [2, 2, 2]


def test_other_settings_begin_anew(codes: Dict[str, int], tmp_path: Path) -> None:
    (old,), (new,) = make_runs(tmp_path, "soft"), make_runs(tmp_path, "soft", **{"--max-update": 31})
    run_all([old])
    (old.folder / "checkpoints").mkdir()
    run_all([new])
    assert times(new) == 4 and new.is_complete() and not old.is_complete()
    assert not (new.folder / "checkpoints").exists()


def test_an_unfinished_run_keeps_its_checkpoints_and_not_its_results(codes: Dict[str, int], tmp_path: Path) -> None:
    (run,) = make_runs(tmp_path, "soft")
    run_all([run])
    (run.folder / "done.json").unlink()
    run.results.mkdir()
    (run.results / "generate-test.txt").write_text("half of it")
    (run.folder / "checkpoints").mkdir()
    run_all([run])
    assert (run.folder / "checkpoints").exists() and not run.results.exists()


def test_a_failure_shows_its_log_and_the_others_go_on(codes: Dict[str, int], tmp_path: Path) -> None:
    codes["wait-3"] = 7
    runs = make_runs(tmp_path, "wait-3", "soft")
    said = run_all(runs, jobs=1)
    assert "    it runs\nwait-3-s1: " in said and "failed with exit code 7; the end of its log is above" in said
    assert runs[1].is_complete()


def test_a_warm_start_comes_after_what_it_starts_from(
    codes: Dict[str, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    soft = recipe.systems()["soft"]
    late, later = soft._replace(key="late", after="soft"), soft._replace(key="later", after="late")
    every = {system.key: system for system in (soft, late, later)}
    monkeypatch.setattr(recipe, "systems", lambda: every)
    (run,) = make_runs(tmp_path, "later")
    assert [member.name for member in runner.with_predecessors([run])] == ["soft-s1", "late-s1", "later-s1"]
    codes["late"] = 1
    failed = runner.run_all([run], 2, Line(io.StringIO()), poll=0.01)
    assert [member.name for member in failed] == ["late-s1", "later-s1"]
    codes.clear()
    run_all([run])
    assert run.settings()["after"]["after"] == make_runs(tmp_path, "soft")[0].settings()


def test_done_is_not_believed_without_settings(codes: Dict[str, int], tmp_path: Path) -> None:
    (run,) = make_runs(tmp_path, "soft")
    run.folder.mkdir()
    for text in ("", "{", "[]", "{}", '{"settings": {}}'):
        (run.folder / "done.json").write_text(text)
        assert not run.is_complete()


def test_a_folder_in_use_is_left_alone(codes: Dict[str, int], tmp_path: Path) -> None:
    (run,) = make_runs(tmp_path, "soft")
    job = runner.Job(run, single_thread=True)
    try:
        with pytest.raises(RunError, match="in use by another process"):
            runner.run_all([run], 1, Line(io.StringIO()))
    finally:
        job.close()


def test_interruption_ends_the_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(runner.Run, "commands", lambda run: [sleep, sleep])
    jobs: List[runner.Job] = []

    def describe(job: runner.Job) -> str:
        jobs.append(job)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.Job, "describe", describe)
    runs = make_runs(tmp_path, "soft", "wait-3")
    with pytest.raises(KeyboardInterrupt):
        runner.run_all(runs, 2, Line(io.StringIO()))
    assert jobs[0].process.poll() is not None
    assert not any(run.is_complete() for run in runs)


def test_checkpoints_that_were_cut_off(tmp_path: Path) -> None:
    for name in ("checkpoint_1_10.pt", "checkpoint_2_200.pt", "checkpoint_2_30.pt", "checkpoint_best.pt"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("data", name * 100)
    whole = (tmp_path / "checkpoint_2_200.pt").read_bytes()
    (tmp_path / "checkpoint_last.pt").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "checkpoint_best.pt").write_bytes(whole[:10])
    runner.mend_checkpoints(tmp_path)
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == whole
    assert not (tmp_path / "checkpoint_best.pt").exists()


def test_the_log_is_followed_from_where_it_is(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(INNER % (9.0, 5))
    reader = LogReader(log)
    assert reader.poll() is None
    with open(log, "a") as file:
        file.write("noise\n" + INNER % (3.5, 10) + (INNER % (3.25, 20))[:40])
        file.flush()
        assert reader.poll() == Status(10, 3.5, 4.5)
        file.write((INNER % (3.25, 20))[40:])
        file.flush()
        assert reader.poll() == Status(20, 3.25, 4.5)
    assert reader.seconds_per_update() is not None


@pytest.mark.parametrize("line", ["", "train_inner", "| train_inner | {", '| train_inner | {"loss": "1"}'])
def test_other_lines_of_a_log_are_passed_over(line: str) -> None:
    assert parse(line) is None


def test_a_terminal_gets_one_line_and_other_outputs_few(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        line = Line(stream)
        for _ in range(3):
            line.show(["x" * 500, "y"])
        line.say("done")
    assert terminal.getvalue().count("\n") == 1 and "…" in terminal.getvalue()
    assert file.getvalue().count("\n") == 2


@pytest.mark.parametrize("seconds, words", [(0, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (7500, "2 h 5 min")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_failing_preprocess_leaves_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpus, "command", lambda name: sys.executable)
    with pytest.raises(RunError, match="failed with exit code"):
        corpus.prepare_data(tmp_path, recipe.FAST.sizes, Line(io.StringIO()))
    assert list(tmp_path.iterdir()) == []


def test_the_recipe_has_what_the_study_asks() -> None:
    systems = recipe.systems()
    assert {"soft", "monotonic", "milk-published", "milk-unpreserved", *recipe.DEMO_SYSTEMS} <= set(systems)
    assert {recipe.noise_key(n) for n in recipe.NOISES} <= set(systems)
    assert recipe.LAMBDA in recipe.LAMBDAS
    settings = [json.dumps(recipe.arguments(system.options)) for system in systems.values()]
    assert len(set(settings)) == len(settings), "two systems are the same"


def test_arguments() -> None:
    assert recipe.arguments({"--lr": 3e-3, "--cpu": None, "--noise": 0}) == ["--lr", "0.003", "--cpu", "--noise", "0"]


def test_unknown_systems_are_named(capsys: Any, tmp_path: Path) -> None:
    assert study.main(["--only", "nothing", "--out", str(tmp_path / "out")]) == 1
    assert "no system is called nothing" in capsys.readouterr().err


def test_tables_line_up() -> None:
    cells = [["system", "DAL"], ["MILk, λ = 0.1", "3.10 (3.00–3.20)"]]
    lines = tables.text_table(cells).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert tables.markdown_table(cells).splitlines()[1] == "| --- | ---: |"
