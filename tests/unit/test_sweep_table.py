"""The table of a sweep is written atomically and read back unchanged; every fault in it is named."""

import json
import math
from pathlib import Path
from typing import Any, Dict, List

import pytest

from fairseq_milk.console.errors import RunError, UserError
from fairseq_milk.sweep.runs import Run
from fairseq_milk.sweep.score import result_of
from fairseq_milk.sweep.table import Result, read_results, summary, write_results

ROW = Result(
    system="milk",
    setting="latency-weight=0.1",
    seed=1,
    bleu=30.1,
    bleu_low=29.0,
    bleu_high=31.5,
    dal=5.25,
    dal_low=5.0,
    dal_high=5.5,
    al=4.0,
    ap=1 / 3,
    n_sentences=1000,
    bleu_signature="nrefs:1|tok:13a",
    latency_signature="unit:subword|eos:yes",
    train_seconds=1234.5,
    generate_seconds=12.0,
    warm_start="start-s1",
    checkpoint="milk-s1/checkpoints/checkpoint_best.pt",
    log="milk-s1/results/generate-test.jsonl",
    commit="0.1.0+2f9ae97c1b2d",
    al_low=3.75,
    al_high=4.25,
    ap_low=0.3,
    ap_high=0.36,
)


def at(row: Result, folder: Path) -> Result:
    return row._replace(checkpoint=str(folder / row.checkpoint), log=str(folder / row.log))


@pytest.mark.parametrize("name", ["results.csv", "results.json"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    rows = [ROW, ROW._replace(system='a "b", c', setting="", warm_start="", seed=2, bleu=1e-9)]
    made, moved = tmp_path / "made", tmp_path / "moved"
    made.mkdir()
    write_results([at(row, made) for row in rows], made)
    made.rename(moved)
    assert read_results(moved / name) == [at(row, moved) for row in rows]
    assert sorted(path.name for path in moved.iterdir()) == ["results.csv", "results.json"]


@pytest.mark.parametrize("name", ["results.csv", "results.json"])
def test_a_figure_that_could_not_be_had(tmp_path: Path, name: str) -> None:
    write_results([at(ROW._replace(bleu=math.nan, bleu_signature=""), tmp_path)], tmp_path)
    (row,) = read_results(tmp_path / name)
    assert math.isnan(row.bleu) and row.bleu_signature == "" and row.dal == ROW.dal
    assert "NaN" not in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", ["results.csv", "results.json"])
def test_a_table_from_before_al_and_ap_had_intervals(tmp_path: Path, name: str) -> None:
    new = {"al_low", "al_high", "ap_low", "ap_high"}
    old = {column: cell for column, cell in ROW._asdict().items() if column not in new}
    text = json.dumps([old]) if name.endswith("json") else f"{','.join(old)}\n{','.join(map(str, old.values()))}\n"
    (tmp_path / name).write_text(text)
    (row,) = read_results(tmp_path / name)
    assert all(math.isnan(getattr(row, column)) for column in new)
    assert row._replace(al_low=0, al_high=0, ap_low=0, ap_high=0) == at(ROW, tmp_path)._replace(
        al_low=0, al_high=0, ap_low=0, ap_high=0
    )


@pytest.mark.parametrize("name", ["results.csv", "results.json"])
def test_no_run_is_complete(tmp_path: Path, name: str) -> None:
    write_results([], tmp_path)
    assert read_results(tmp_path / name) == []


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"dal": "fast"}, "row 1: dal should be a float, got 'fast'"),
        ({"seed": None}, "row 1: seed should be a int, got None"),
        ({"system": 3}, "row 1: system should be a str, got 3"),
    ],
)
def test_faults(tmp_path: Path, change: Dict[str, Any], problem: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([{**ROW._asdict(), **change}]))
    with pytest.raises(UserError, match=problem):
        read_results(path)


@pytest.mark.parametrize(
    "name, content, problem",
    [
        ("results.csv", b"system,seed\nmilk,1\n", "row 1: there is no column setting"),
        ("results.json", b"{", "is not a table of fairseq-milk sweep"),
        ("results.json", b"{}", "it must be a list of rows"),
        ("results.json", b"[1]", "it must be a list of rows"),
        ("results.csv", b"\xff", "is not a table of fairseq-milk sweep"),
        ("none.csv", None, "cannot be read: No such file"),
    ],
)
def test_what_is_no_table(tmp_path: Path, name: str, content: Any, problem: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=problem):
        read_results(tmp_path / name)


def test_the_summary_has_intervals_and_signatures() -> None:
    said = summary([ROW, ROW._replace(system="wait-k", setting="wait-k=3")])
    assert "30.1  29.0-31.5  5.25  5.00-5.50  4.00  0.333" in said
    assert said.endswith("(nrefs:1|tok:13a)\n(unit:subword|eos:yes)")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Decoded without references, and nothing but empty hypotheses."""
    run = Run("soft", "", 1, [], [], "checkpoint_best.pt", tmp_path, "", tmp_path)
    run.results.mkdir(parents=True)
    run.summary.write_text(json.dumps({"sentences": 2, "BLEU": None, "latency": None}))
    lines = [{"id": n, "AP": None, "AL": None, "DAL": None} for n in range(2)]
    run.summary.with_suffix(".jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_a_run_without_references_has_a_row(run: Run, tmp_path: Path) -> None:
    write_results([result_of(run)], tmp_path)
    (row,) = read_results(tmp_path / "results.csv")
    assert row.n_sentences == 2 and math.isnan(row.bleu) and math.isnan(row.dal_high) and math.isnan(row.ap)
    assert row.bleu_signature == row.latency_signature == row.warm_start == ""


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"sentences": 2, "BLEU": {"score": 1}, "latency": null}'])
def test_results_that_somebody_has_damaged(run: Run, content: str) -> None:
    run.summary.write_text(content)
    with pytest.raises(RunError, match="does not hold what fairseq-generate has left there: remove .*done.json"):
        result_of(run)


@pytest.mark.parametrize("kept", [None, {"BLEU": [None, None], "DAL": [2.0, 5.0]}], ids=["new", "kept without AL"])
def test_every_latency_has_an_interval(run: Run, kept: Any) -> None:
    """The intervals are computed also for a sweep that has kept those of DAL alone."""
    latency = {"AP": 0.5, "AL": 3.0, "DAL": 4.0, "signature": "unit:subword"}
    run.summary.write_text(json.dumps({"sentences": 40, "BLEU": None, "latency": latency}))
    lines: List[Any] = [{"id": n, "AP": 0.4 + n % 3 / 10, "AL": 2.0 + n % 3, "DAL": 3.0 + n % 3} for n in range(40)]
    lines.append({"id": 40, "AP": None, "AL": None, "DAL": None})
    run.summary.with_suffix(".jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if kept is not None:
        (run.results / "intervals.json").write_text(json.dumps(kept))
    for _ in range(2):  # computed, then kept
        row = result_of(run)
        assert 2.5 < row.al_low < 3.0 < row.al_high < 3.5 and row.al_high - row.al_low < 1
        assert 0.4 < row.ap_low < 0.5 < row.ap_high < 0.6
        assert row.dal_low == pytest.approx(row.al_low + 1) and row.dal_high == pytest.approx(row.al_high + 1)
