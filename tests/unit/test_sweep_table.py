"""The table of a sweep is written atomically and read back unchanged; every fault in it is named."""

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from fairseq_milk.console.errors import RunError, UserError
from fairseq_milk.scoring.latency import corpus_latency
from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.table import Result, read_results, write_results
from fairseq_milk.sweep import score
from fairseq_milk.sweep.runs import Run
from fairseq_milk.sweep.score import result_of
from fairseq_milk.sweep.summary import summary

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
def test_missing_figures(tmp_path: Path, name: str) -> None:
    write_results([at(ROW._replace(bleu=math.nan, bleu_signature=""), tmp_path)], tmp_path)
    (row,) = read_results(tmp_path / name)
    assert math.isnan(row.bleu) and row.bleu_signature == "" and row.dal == ROW.dal
    assert "NaN" not in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", ["results.csv", "results.json"])
def test_a_table_from_before_al_and_ap_had_intervals(tmp_path: Path, name: str) -> None:
    new = set(Result._field_defaults)
    old = {column: cell for column, cell in ROW._asdict().items() if column not in new}
    text = json.dumps([old]) if name.endswith("json") else f"{','.join(old)}\n{','.join(map(str, old.values()))}\n"
    (tmp_path / name).write_text(text)
    (row,) = read_results(tmp_path / name)
    assert all(math.isnan(getattr(row, column)) for column in ("al_low", "al_high", "ap_low", "ap_high", "chrf"))
    assert row == at(ROW, tmp_path)._replace(**Result._field_defaults)


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
        ({"seed": math.inf}, "row 1: seed should be a int, got inf"),
        ({"setting": "\x1b]0;title\x07"}, "row 1: setting has control characters"),
        ({"log": "a\u202eb"}, "row 1: log has control characters"),
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
        ("results.json", b"[" * 100_000, "is not a table of fairseq-milk sweep"),
        ("results.csv", b"\xff", "is not a table of fairseq-milk sweep"),
        ("none.csv", None, "cannot be read: No such file"),
    ],
)
def test_files_that_are_not_tables(tmp_path: Path, name: str, content: Any, problem: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=problem):
        read_results(tmp_path / name)


def test_a_pipe_is_not_a_table(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "results.csv")
    with pytest.raises(UserError, match="results.csv is not a regular file"):
        read_results(tmp_path / "results.csv")


def test_the_summary_has_intervals_and_signatures() -> None:
    said = summary([ROW, ROW._replace(system="wait-k", setting="wait-k=3")])
    assert "30.1  29.0-31.5  5.25  5.00-5.50  4.00  0.333" in said
    assert said.endswith("(nrefs:1|tok:13a)\n(unit:subword|eos:yes)")


def write_generation(run: Run, records: List[Record], summary: Dict[str, Any]) -> None:
    run.summary.write_text(json.dumps(summary))
    lines = [json.dumps(record.to_dict()) + "\n" for record in records]
    run.summary.with_suffix(".jsonl").write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Decoded without references, and nothing but empty hypotheses."""
    run = Run("soft", "", 1, [], [], "checkpoint_best.pt", tmp_path, "", tmp_path)
    run.results.mkdir(parents=True)
    empty = [Record(n, ["ein", "Haus"], [], []) for n in range(2)]
    write_generation(run, empty, {"sentences": 2, "BLEU": None, "latency": None})
    return run


def test_a_run_without_references_has_a_row(run: Run, tmp_path: Path) -> None:
    write_results([result_of(run)], tmp_path)
    (row,) = read_results(tmp_path / "results.csv")
    assert row.n_sentences == 2 and math.isnan(row.bleu) and math.isnan(row.dal_high) and math.isnan(row.ap)
    assert row.bleu_signature == row.latency_signature == row.warm_start == ""


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"sentences": 2, "BLEU": {"score": 1}, "latency": null}'])
def test_damaged_results(run: Run, content: str) -> None:
    run.summary.write_text(content)
    with pytest.raises(RunError, match="the results in .* are damaged: remove .*done.json"):
        result_of(run)


SIGNATURES = {"BLEU": None, "latency": {"signature": "unit:subword|eos:yes|len:hyp|version:0.0.9"}}


def waiting(wait: int, sentence: int, length: int = 6) -> Record:
    """wait-k.  Words alone, no references."""
    words = [f"w{n}" for n in range(length)]
    return Record(sentence, words, words, [min(wait + n, length + 1) for n in range(length + 1)])


@pytest.mark.parametrize("kept", [None, [{"BLEU": [None, None]}], "damaged"], ids=["new", "an old file", "damaged"])
def test_every_latency_has_an_interval(run: Run, kept: Any) -> None:
    """The intervals are computed also if the file of the kept score holds something else."""
    records = [waiting(1 + n % 3, n) for n in range(40)]
    write_generation(run, [*records, Record(40, ["ein"], [], [])], {**SIGNATURES, "attention": "waitk"})
    if kept is not None:
        result_of(run)
        (path,) = run.results.glob("score-*.json")
        path.write_text(json.dumps(kept))
    latency = corpus_latency(records).mean
    for _ in range(2):  # computed, then kept
        row = result_of(run)
        for column in ("dal", "al", "ap", "laal"):
            low, value, high = (row.figure(column + end) for end in ("_low", "", "_high"))
            assert low < value < high and high - low < value / 2 and value == getattr(latency, column.upper())
        assert (row.cw, row.initial_delay, row.n_sentences, row.collapse) == (latency.CW, latency.initial, 41, "")


def test_a_score_is_kept_until_the_references_change(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_generation(run, [waiting(2, n) for n in range(4)], SIGNATURES)
    references = tmp_path / "references"
    references.write_text("w0 w1 w2 w3 w4 w5\n" * 4)
    right = dataclasses.replace(run, references=references)
    assert math.isnan(result_of(run).bleu) and result_of(right).bleu == pytest.approx(100)
    monkeypatch.setattr(score, "score_file", None)
    assert result_of(right).chrf == pytest.approx(100), "kept"
    monkeypatch.undo()
    references.write_text("w0 w1 w2 w3 w4 other\n" * 4)
    assert result_of(right).bleu < 90
    references.write_text("w0 w1 w2 w3 w4 w5\n" * 3)
    with pytest.raises(RunError, match="has no line 4: it is not the text of what was decoded"):
        result_of(right)


@pytest.mark.parametrize(
    "attention, wait, collapse",
    [("milk", 9, "reads everything"), ("milk", 2, ""), ("waitk", 9, ""), ("soft", 9, ""), (None, 9, "")],
)
def test_a_collapsed_schedule_is_marked(run: Run, attention: str, wait: int, collapse: str) -> None:
    write_generation(run, [waiting(wait, n) for n in range(9)], {**SIGNATURES, "attention": attention})
    row = result_of(run)
    assert row.collapse == collapse
    assert ("collapsed: soft (seed 1) reads everything" in summary([row])) == bool(collapse)


def test_a_schedule_that_writes_at_once_is_marked(run: Run) -> None:
    hurried = [waiting(1, n)._replace(delays=[1, 1, 1, 1, 1, 2, 7]) for n in range(9)]
    write_generation(run, hurried, {**SIGNATURES, "attention": "mocha"})
    assert result_of(run).collapse == "writes at once"


def test_further_figures_of_a_study_are_columns(tmp_path: Path) -> None:
    rows = [ROW._replace(further={"exact": 99.5}), ROW._replace(seed=2, further={"separable": 7.0})]
    write_results([at(row, tmp_path) for row in rows], tmp_path)
    for name in ("results.csv", "results.json"):
        first, second = read_results(tmp_path / name)
        assert first.figure("exact") == 99.5 and second.figure("separable") == 7.0 and first.figure("dal") == ROW.dal
        assert math.isnan(second.figure("exact")) and math.isnan(first.figure("nothing"))
    (tmp_path / "results.csv").write_text((tmp_path / "results.csv").read_text().replace("99.5", "many"))
    with pytest.raises(UserError, match="row 1: exact should be a float, got 'many'"):
        read_results(tmp_path / "results.csv")


def test_a_row_without_files_keeps_none(tmp_path: Path) -> None:
    write_results([ROW._replace(log="", checkpoint="")], tmp_path)
    (row,) = read_results(tmp_path / "results.csv")
    assert row.log == row.checkpoint == ""
