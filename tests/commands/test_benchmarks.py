"""The benchmark runs, prints its table and writes its files.  No time is asserted."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import decoding, growth, report
from benchmarks.harness import (
    ROUNDS,
    Bar,
    Check,
    Comparison,
    Finished,
    NotMeasuredError,
    Outcome,
    Row,
    Size,
    compare_processes,
)
from benchmarks.results import Results
from fairseq_milk.live.tracing import can_trace

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("simuleval", "growth-ranks", "session-token")  # these start fairseq or SimulEval several times
EXPORTED = () if can_trace() else ("live",)  # exporting needs a newer torch
QUICK = [row.name for row in benchmarks.ROWS if row.name not in COMMANDS + EXPORTED]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a quick run leaves behind."""
    out = tmp_path_factory.mktemp("benchmarks")
    benchmarks.main(["--quick", "--out", str(out), *(f"--only={name}" for name in QUICK)])
    return out


def test_every_row_is_in_the_results(quick: Path) -> None:
    results = json.loads((quick / "results.json").read_text())
    assert set(results["rows"]) == set(QUICK)
    assert results["about"]["quick"] and "torch" in results["about"]["machine"]
    for name, row in results["rows"].items():
        assert not row["note"].startswith("not measured"), name
        assert name.startswith("growth") or any(check["bar"] for check in row["checks"]), name
        assert all(check["met"] in ((True, False) if check["bar"] else (None,)) for check in row["checks"]), name


def test_what_does_not_depend_on_the_machine_is_right(quick: Path) -> None:
    checks = {
        c["what"]: c["value"]
        for row in json.loads((quick / "results.json").read_text())["rows"].values()
        for c in row["checks"]
    }
    assert checks["sentences with other tokens or delays"] == 0
    assert checks["largest difference of the features"] < 1e-5
    assert checks["error of exact"] < 1e-5 < checks["error of fairseq"]
    assert checks["largest difference of the gradients, relative"] < 1e-5
    assert checks["modules for plotting, SimulEval or text processing"] == 0


def test_the_picture_exists(quick: Path) -> None:
    assert (quick / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_names_are_unique_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.main(["--list"])
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [row.name for row in benchmarks.ROWS] and len(set(listed)) == len(listed)


# ---- without running anything ------------------------------------------------------------------------------------


def example(value: float = 1.2) -> Outcome:
    return Outcome([Check("a / b, CPU", value, Bar("<=", 1.1))], {"a": {"CPU ms": 12.0}, "b": {"CPU ms": 10.0}})


def row(name: str, measure: Callable[[Size], Outcome] = lambda size: example()) -> Row:
    return Row(name, "a thing", "another", measure, "It was slow.")


def test_a_missed_bar_a_missing_peer_and_an_error_are_reported_and_the_rest_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(size: Size) -> Outcome:
        raise NotMeasuredError("no peer here")

    def broken(size: Size) -> Outcome:
        raise ZeroDivisionError("oh")

    rows = [row("missing", missing), row("broken", broken), row("missed")]
    monkeypatch.setattr(benchmarks, "ROWS", rows)
    benchmarks.main(["--quick", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "not measured: no peer here" in printed
    assert "not measured: ZeroDivisionError: oh" in printed
    assert "bar <= 1.1: MISSED" in printed


def test_what_was_tried_is_said_once_for_all_missed_bars_of_a_row(tmp_path: Path) -> None:
    results = Results(tmp_path, quick=False)
    results.add(row("one"), Outcome([Check(what, 1.2, Bar("<=", 1.1)) for what in ("a", "b")], {}, ""), 1.0)
    said = "- one: a is 1.2, the bar is <= 1.1; b is 1.2, the bar is <= 1.1. It was slow."
    assert report.verdict(results) == f"0 of 2 bars are met.\n{said}"


def test_benchmarks_md(tmp_path: Path) -> None:
    results = Results(tmp_path, quick=False)
    results.add(row("one"), example(1.0), 1.0)
    results.add(row("two"), example(1.2), 1.0)
    points = {"J=10": {"CPU ms": 1.0, "peak MB": 2.0}, "J=20": {"CPU ms": 3.0, "peak MB": 4.0}}
    results.add(row("growth-J"), Outcome([Check("time ~ J^", 1.58)], points, "because."), 1.0)
    pictures = {"bars": tmp_path / "bars.png", "growth": tmp_path / "growth.png"}
    report.draw_bars(results, pictures["bars"])
    report.draw_growth(results, pictures["growth"])
    text = report.record(results, pictures, tmp_path).read_text()
    assert "| one | a thing | another | a / b, CPU | 1 x | <= 1.1 | met |" in text
    assert "| 1.2 x | <= 1.1 | MISSED |" in text
    assert "1 of 2 bars are met.\n- two: a / b, CPU is 1.2, the bar is <= 1.1. It was slow." in text
    assert "- **J** (time ~ J^: 1.58x): because." in text
    assert str(results.about["machine"]["processor"]) in text
    for name in pictures:
        assert (tmp_path / "docs" / "benchmarks" / f"{name}.png").exists()
        assert f"(docs/benchmarks/{name}.png)" in text


def test_results_of_another_size_are_dropped_and_those_of_the_same_are_kept(tmp_path: Path) -> None:
    Results(tmp_path, quick=True).add(row("one"), example(), 1.0)
    assert list(Results(tmp_path, quick=True).rows) == ["one"]
    assert not Results(tmp_path, quick=False).rows


def test_a_ratio_is_the_median_within_rounds() -> None:
    times = Comparison(["a", "b"])
    times.cpu = {"a": [2.0, 30.0, 2.0], "b": [1.0, 10.0, 1.0]}  # the second round was disturbed
    assert times.ratio("a", "b") == 2.0


@pytest.mark.parametrize(
    "sign, value, met", [("<=", 1.0, True), ("<", 1.0, False), (">=", 1.0, True), (">=", 0.9, False)]
)
def test_bars(sign: str, value: float, met: bool) -> None:
    assert Bar(sign, 1.0).met(value) is met


def sleepless() -> Callable[[], None]:
    """A step that does nothing, in whatever process it is built."""
    return lambda: None


def unbuildable() -> Callable[[], None]:
    raise ValueError("no such model")


def test_processes_take_turns(tmp_path: Path) -> None:
    times = compare_processes({"a": sleepless, "b": sleepless}, Size(True, tmp_path))
    assert len(times.cpu["a"]) == len(times.cpu["b"]) >= ROUNDS["cpu"][0] and not times.wall["a"]
    with pytest.raises(ValueError, match="no such model"):
        compare_processes({"a": sleepless, "b": unbuildable}, Size(True, tmp_path))


def test_a_command_costs_what_more_sentences_add() -> None:
    assert decoding.costs({1: Finished("", 5.0, 7.0), 11: Finished("", 6.0, 9.0)}) == pytest.approx(
        {"CPU ms per sentence": 100.0, "wall ms per sentence": 200.0, "wall s to start": 6.8}
    )


def test_words_per_second_are_those_of_the_log() -> None:
    lines = [f'| INFO | train_inner | {{"epoch": 1, "wps": "{rate}"}}' for rate in (1, 20.5, 300)]
    assert growth.words_per_second("\n".join(lines)) == [1.0, 20.5, 300.0]
    with pytest.raises(NotMeasuredError, match="no words per second"):
        growth.words_per_second("nothing")


def test_memory_is_what_a_step_needs() -> None:
    """Measured in a child process, because the peak of a process never falls."""
    code = "extra_memory(lambda: None), extra_memory(lambda: kept.append(bytearray(b'x') * (100 << 20)))"
    command = f"from benchmarks.harness import extra_memory; kept = []; print(*[{code}])"
    said = subprocess.check_output([sys.executable, "-c", command], cwd=ROOT, text=True)
    nothing, something = map(float, said.split()[-2:])
    assert nothing < 20 and 90 < something < 130
