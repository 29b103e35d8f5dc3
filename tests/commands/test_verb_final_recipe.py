"""The recipe of examples/verb_final: its systems, its runs for the engine of `fairseq-milk sweep`, and its tables."""

import fcntl
import io
import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import pytest

from examples.document import fill
from examples.verb_final import comparison, convert, corpus, pictures, recipe, record, redraw, results, study, tables
from examples.verb_final.runs import make_run
from fairseq_milk.console.errors import RunError
from fairseq_milk.console.locks import locked
from fairseq_milk.console.progress import Line
from fairseq_milk.console.tables import markdown_table, text_table
from fairseq_milk.scoring.table import Result
from fairseq_milk.sweep import scheduler
from fairseq_milk.sweep.runs import Run
from tests.support import stand_in_sweep
from tests.support.stand_in_sweep import other_model


def test_a_failing_preprocess_leaves_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpus, "command", lambda name: sys.executable)
    with pytest.raises(RunError, match="failed with exit code"):
        corpus.prepare_data(tmp_path, recipe.FAST.sizes, Line(io.StringIO()))
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    data = corpus.folder_of(tmp_path, corpus.draw_files(recipe.FAST.sizes))
    for folder in (data, tmp_path / ".data-killed" / "text"):
        folder.mkdir(parents=True)
    assert corpus.prepare_data(tmp_path, recipe.FAST.sizes, Line(io.StringIO())) == data
    assert {path.name for path in tmp_path.iterdir()} == {".lock", data.name}


def test_only_one_process_makes_data(tmp_path: Path) -> None:
    with locked(tmp_path / ".lock"), open(tmp_path / ".lock") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_text_of_the_recorded_study_is_what_it_was() -> None:
    """The name of the data folder must not change: trained models are found by it."""
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
    with pytest.raises(SystemExit) as stop:
        study.main(["--only", "nothing", "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    assert "no system is called nothing" in capsys.readouterr().err


def test_a_seed_counts_once() -> None:
    assert study.parse(["--seeds", "2", "1", "2"]).seeds == [2, 1]


def test_a_report_prepares_nothing(capsys: Any, tmp_path: Path) -> None:
    assert study.main(["--report", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "study: there is nothing to report: no run is complete\n"
    assert not (tmp_path / "out").exists()


def test_a_study_replaces_a_model_only_with_retrain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other_model(tmp_path / "soft-s1")
    corpus.folder_of(tmp_path, corpus.draw_files(recipe.STUDY.sizes)).mkdir()
    started: List[str] = []

    def run_all(runs: Sequence[Run], jobs: int, line: Line) -> List[Run]:
        started.extend(run.name for run in runs)
        return []

    monkeypatch.setattr(scheduler, "run_all", run_all)
    words = ["--only", "soft", "--seeds", "1", "--out", str(tmp_path)]
    assert study.main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(tmp_path / "soft-s1") in said and "--retrain" in said and not started
    study.main([*words, "--retrain"])
    assert started == ["soft-s1"]


def test_tables_line_up() -> None:
    cells = [["system", "DAL"], ["MILk, λ = 0.1", "3.10 (3.00–3.20)"]]
    lines = text_table(cells).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert markdown_table(cells).splitlines()[1] == "| --- | ---: |"


def table(systems: Dict[str, Tuple[float, float]]) -> List[Result]:
    """Of one seed.  systems: DAL and per cent exact."""
    every = {results.ORACLE: results.BEST, **recipe.systems()}
    return [
        stand_in_sweep.result(every[key].family, every[key].point, dal=dal, further={"exact": exact})
        for key, (dal, exact) in {"oracle": (3.0, 100.0), **systems}.items()
    ]


def test_wait_k_at_the_same_lag() -> None:
    milk = {"milk-0.12": (3.0, 99.0), "milk-0.3": (2.5, 90.0), "milk-0.5": (1.0, 60.0), "milk-1": (0.9, 50.0)}
    waitk = {"wait-4": (4.0, 60.0), "wait-1": (1.0, 20.0), "wait-2": (2.0, 30.0)}
    beside = table({**milk, **waitk, "milk-0.05": (5.0, 99.0)})
    cells = tables.study_tables(results.from_table(beside))["Large λ"]
    assert [row[0] for row in cells[1:]] == ["MILk, λ = 0.12", "MILk, λ = 0.3", "MILk, λ = 0.5", "MILk, λ = 1"]
    assert [row[-1] for row in cells[1:]] == ["45.0", "37.5", "20.0", "below wait-1 (DAL 1.00)"]
    assert comparison.waitk_at(results.from_table(beside), 4.1) == "above wait-4 (DAL 4.00)"


def test_every_table_of_the_recorded_study_stands_in_results_md() -> None:
    """If this fails, run `python -m examples.verb_final.redraw examples/verb_final/results/study.csv --record`."""
    recorded = results.from_table(results.read_tables([record.STUDY]))
    made = tables.study_tables(recorded)
    assert set(made) == {
        "At about the same lag",
        "All mechanisms",
        "Alignment and mass",
        "Noise",
        "Large λ",
        "Both model families",
    }
    document = record.DOCUMENT.read_text(encoding="utf-8")
    assert fill(record.DOCUMENT, made) == document
    shown = map(markdown_table, made.values())
    assert all(table in document and table in tables.markdown(recorded) for table in shown)


def test_the_recorded_pictures_can_be_drawn_again(tmp_path: Path) -> None:
    drawn = pictures.draw_schedules(record.SCHEDULES, tmp_path, ["png"])
    assert {record.PLANE.name, *(path.name for path in drawn)} == {path.name for path in record.KEPT.glob("*.png")}


def test_labels_of_the_recorded_plane_are_placed_in_the_order_that_costs_least() -> None:
    """Placed in the order of the points, MILk's labels near the star would take the place beside MoChA's point."""
    figure = pictures.draw_plane(results.from_table(results.read_tables([record.STUDY])), "exact")
    (mocha,) = [text for text in figure.axes[0].texts if text.get_text() == "w=8"]
    assert np.abs(mocha.get_position()).max() < 16  # points of print


def test_tables_are_replaced_in_their_places(tmp_path: Path) -> None:
    document = tmp_path / "RESULTS.md"
    document.write_text("a\n<!-- table: one -->\n| old |\n<!-- end -->\nb\n<!-- table: two -->\n<!-- end -->\n")
    one, two = "| 1 |\n| --- |\n| x |", "| 2 |\n| --- |"
    assert (
        fill(document, {"two": [["2"]], "one": [["1"], ["x"]]})
        == f"a\n<!-- table: one -->\n{one}\n<!-- end -->\nb\n<!-- table: two -->\n{two}\n<!-- end -->\n"
    )
    with pytest.raises(RunError, match="three"):
        fill(document, {"one": [["1"]], "two": [["2"]], "three": [["3"]]})


def test_the_recorded_study_can_be_redrawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figures of two files are merged, the last one wins, and the result can be read again."""
    heading, oracle, *lines = record.STUDY.read_text(encoding="utf-8").splitlines()
    soft = next(line for line in lines if line.startswith("soft,offline,1,"))
    more = tmp_path / "more.csv"
    other = soft.replace("soft,offline,1,", "soft,offline,9,")
    lines_of_more = [heading, other, soft, soft.replace("soft,offline,", "hard,,")]
    more.write_text("\n".join(lines_of_more) + "\n", encoding="utf-8")
    assert redraw.main([str(record.STUDY), str(more), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == "left out, as recipe.py has no such system: hard\n"
    written = (tmp_path / "out" / "results.csv").read_text(encoding="utf-8").splitlines()
    assert sorted(written) == sorted([heading, oracle, *lines, other])
    assert "| soft attention (offline) | " in (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "plane.png").exists()


@pytest.mark.parametrize("text", ["", "system,seed\nsoft,1\n", "nothing"])
def test_a_file_that_is_not_a_table_is_named(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    assert redraw.main([str(tmp_path / "table.csv"), "--out", str(tmp_path / "out")]) != 0
    assert str(tmp_path / "table.csv") in "".join(capsys.readouterr())


def test_a_table_of_an_old_study_is_converted(tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text(
        "system,seed,BLEU,exact,DAL,AL,AP,verb-second,verb-final,separable\n"
        "oracle,,100,100,3.67768,2.05111,0.645009,100,100,100\n"
        "milk-0.12,2,99.5,98.25,3.9,2.5,0.7,99,97,98\n"
        "gone,1,1,1,1,1,1,1,1,1\n"
    )
    assert convert.main([str(old), str(tmp_path / "new.csv")]) == 0
    oracle, milk = results.read_tables([tmp_path / "new.csv"])
    assert (oracle.system, oracle.seed, oracle.dal) == ("oracle", 0, 3.67768)
    assert (milk.system, milk.setting, milk.seed, milk.bleu, milk.ap) == ("MILk", "λ=0.12", 2, 99.5, 0.7)
    assert milk.further == {"exact": 98.25, "verb-second": 99.0, "verb-final": 97.0, "separable": 98.0}
    assert milk.log == "" and milk.latency_signature == results.SIGNATURE
    assert convert.main([str(tmp_path / "new.csv"), str(tmp_path / "newer.csv")]) == 2
