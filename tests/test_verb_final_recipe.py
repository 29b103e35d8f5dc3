"""The recipe of examples/verb_final: its systems, its runs for the engine of `fairseq-milk sweep`, and its tables."""

import fcntl
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.verb_final import corpus, recipe, redraw, study, tables
from examples.verb_final.runs import make_run
from fairseq_milk.sweep.commands import RunError
from fairseq_milk.sweep.progress import Line
from fairseq_milk.sweep.table import text_table


def test_a_failing_preprocess_leaves_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpus, "command", lambda name: sys.executable)
    with pytest.raises(RunError, match="failed with exit code"):
        corpus.prepare_data(tmp_path, recipe.FAST.sizes, Line(io.StringIO()))
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_what_somebody_who_was_killed_has_left_is_removed(tmp_path: Path) -> None:
    data = corpus.folder_of(tmp_path, corpus.draw_files(recipe.FAST.sizes))
    for folder in (data, tmp_path / ".data-killed" / "text"):
        folder.mkdir(parents=True)
    assert corpus.prepare_data(tmp_path, recipe.FAST.sizes, Line(io.StringIO())) == data
    assert {path.name for path in tmp_path.iterdir()} == {".lock", data.name}


def test_only_one_process_makes_data(tmp_path: Path) -> None:
    with corpus.locked(tmp_path), open(tmp_path / ".lock") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_text_of_the_recorded_study_is_what_it_was() -> None:
    """Its trained models are found by it."""
    assert corpus.folder_of(Path(), corpus.draw_files(recipe.STUDY.sizes)).name == "data-09550f647d"


def test_the_recipe_has_what_the_study_asks() -> None:
    systems = recipe.systems()
    assert {"soft", "monotonic", "milk-published", "milk-unpreserved", *recipe.DEMO_SYSTEMS} <= set(systems)
    assert {recipe.noise_key(n) for n in recipe.NOISES} <= set(systems)
    assert recipe.LAMBDA in recipe.LAMBDAS
    settings = [json.dumps(recipe.arguments(system.options)) for system in systems.values()]
    assert len(set(settings)) == len(settings), "two systems are the same"


def test_runs_that_an_earlier_study_has_completed_stay_complete(tmp_path: Path) -> None:
    """The keys of done.json are those of version 0.1.0, whose studies took days."""
    system = recipe.systems()["wait-3"]
    run = make_run(system, 2, recipe.STUDY, tmp_path / "data-0", tmp_path)
    settings = {
        "train": recipe.arguments(recipe.train_options(system, recipe.STUDY)),
        "generate": recipe.arguments(recipe.GENERATE),
        "checkpoint": recipe.CHECKPOINT,
        "seed": 2,
        "data": "data-0",
    }
    results = tmp_path / "wait-3-s2" / "results"
    results.mkdir(parents=True)
    (results / "generate-test.json").touch()
    (tmp_path / "wait-3-s2" / "done.json").write_text(json.dumps({"settings": settings, "seconds": 3.0}))
    assert run.is_complete()


def test_arguments() -> None:
    assert recipe.arguments({"--lr": 3e-3, "--cpu": None, "--noise": 0}) == ["--lr", "0.003", "--cpu", "--noise", "0"]


def test_unknown_systems_are_named(capsys: Any, tmp_path: Path) -> None:
    assert study.main(["--only", "nothing", "--out", str(tmp_path / "out")]) == 2
    assert "no system is called nothing" in capsys.readouterr().err


def test_tables_line_up() -> None:
    cells = [["system", "DAL"], ["MILk, λ = 0.1", "3.10 (3.00–3.20)"]]
    lines = text_table(cells).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert tables.markdown_table(cells).splitlines()[1] == "| --- | ---: |"


RECORDED = Path(study.__file__).parent / "results" / "study.csv"


def test_the_recorded_study_can_be_redrawn(tmp_path: Path) -> None:
    """Figures of two files come together, the last one counts, and what is written can be read again."""
    heading, oracle, *lines = RECORDED.read_text(encoding="utf-8").splitlines()
    soft = next(line for line in lines if line.startswith("soft,1,"))
    more = tmp_path / "more.csv"
    more.write_text("\n".join([heading, soft.replace("soft,1,", "soft,9,"), soft]) + "\n", encoding="utf-8")
    assert redraw.main([str(RECORDED), str(more), "--out", str(tmp_path / "out")]) == 0
    written = (tmp_path / "out" / "results.csv").read_text(encoding="utf-8").splitlines()
    assert sorted(written) == sorted([heading, oracle, *lines, soft.replace("soft,1,", "soft,9,")])
    assert "| soft attention (offline) | " in (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "plane.png").exists()


@pytest.mark.parametrize("text", ["", "system,seed\nsoft,1\n", "nothing"])
def test_what_is_no_table_is_named(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    assert redraw.main([str(tmp_path / "table.csv"), "--out", str(tmp_path / "out")]) != 0
    assert str(tmp_path / "table.csv") in "".join(capsys.readouterr())
