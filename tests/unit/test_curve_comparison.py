"""Two curves at equal DAL: the paired bootstrap on curves whose difference is known."""

import json
from pathlib import Path
from typing import List

import numpy as np
import pytest

from fairseq_milk import cli
from fairseq_milk.scoring.bootstrap import Sample
from fairseq_milk.scoring.curves import Curve, common_lags, compare, curve_difference, make_curve
from tests.support.stand_in_sweep import sweep


def test_parallel_curves_differ_by_what_lies_between_them() -> None:
    lags = np.array([[2.0, 2.2], [4.0, 4.4], [8.0, 8.8]])
    first, second = Curve(["a", "b", "c"], lags, 10 + 2 * lags), Curve(["a", "b", "c"], lags + 1, 5 + 2 * (lags + 1))
    both = common_lags(first, second)
    assert both[0].tolist() == [3.0, 3.2] and both[-1].tolist() == [8.0, 8.8]
    assert np.allclose(curve_difference(first, second, both), 5.0)


def test_the_points_of_a_resample_may_change_places() -> None:
    curve = Curve(["a", "b"], np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([[10.0, 30.0], [20.0, 20.0]]))
    assert curve.at(np.array([1.5, 2.5]), 0).tolist() == [15.0, 20.0]
    assert curve.at(np.array([1.5, 2.5]), 1).tolist() == [20.0, 25.0]


def copied(table: Path, system: str, new: str) -> None:
    """Copy the rows of a system under another name."""
    rows: List[dict] = json.loads((table.parent / "results.json").read_text())
    rows += [{**row, "system": new} for row in rows if row["system"] == system]
    (table.parent / "results.json").write_text(json.dumps(rows))


def test_a_system_against_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A curve compared with itself: the same sentences are drawn for both, so the difference is exactly 0."""
    table = sweep(tmp_path)
    copied(table, "wait-k", "again")
    assert cli.main(["compare", str(tmp_path / "results.json"), "wait-k", "again"]) == 0
    said = capsys.readouterr().out
    assert said.count("+0.00 (+0.00 to +0.00)") == said.count("\n| ") - 1 and "over 0% of these lags" in said


def test_invalid_curves_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep(tmp_path)
    table = str(tmp_path / "results.csv")
    for words, problem in (
        ((table, "milk", "nobody"), "there is no system nobody; there are soft, milk,"),
        ((table, "milk", "soft"), "exchange the systems"),
        ((table, "milk", "wait-k", "--bootstrap", "0"), "a comparison needs resamples"),
        ((table, "milk", "wait-k", "--subset", "valid"), "--subset valid: the tables have results on test"),
    ):
        assert cli.main(["compare", *words]) == 2
        said = capsys.readouterr().err
        assert problem in said and said.count("\n") == 1


def test_a_point_against_a_curve_and_a_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(sweep(tmp_path))
    assert cli.main(["compare", table, "milk-latency-weight=0.2", "wait-k", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["points"]) == 1 and found["mean"] is None and found["lag"] is None
    assert cli.main(["compare", table, "soft", "milk-latency-weight=0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lag"]["low"] > 0, "soft reads everything"
    assert cli.main(["compare", table, "soft", "milk-latency-weight=0.2"]) == 0
    assert "soft minus milk-latency-weight=0.2 in DAL: +" in capsys.readouterr().out


class Fixed:
    """A score whose statistics are given."""

    def __init__(self, dal: float, bleu: float, sentences: int = 50) -> None:
        self.figures = {"DAL": np.full((sentences, 1), dal), "BLEU": np.full((sentences, 1), bleu)}

    def sample(self, name: str) -> Sample:
        return Sample(self.figures[name], lambda total: float(total[0]) / 50)


def test_seeds_widen_the_interval_and_their_mean_is_the_point() -> None:
    """All sentences are alike here, so only the choice of the seeds varies."""
    one = make_curve([[Fixed(3.0, 30.0)]], ["a"])  # type: ignore[list-item]
    three = make_curve([[Fixed(3.0, bleu) for bleu in (29.0, 30.0, 34.0)]], ["a"])  # type: ignore[misc]
    assert np.ptp(one.quality) < 1e-9 and three.quality[0, 0] == pytest.approx(31.0)
    found = compare(three, one).points[0]
    assert found.quality.score == pytest.approx(1.0) and found.quality.low < 0 < found.quality.high
    draws = three.quality[0, 1:]
    assert draws.mean() == pytest.approx(31.0, abs=0.2) and draws.std() == pytest.approx((14 / 3 / 3) ** 0.5, rel=0.1)


def test_seeds_of_a_table_are_one_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(sweep(tmp_path, seeds=(1, 2)))
    assert cli.main(["compare", table, "milk", "wait-k", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [point["setting"] for point in found["points"]] == ["λ=0.4", "λ=0.2", "λ=0.1"]
    assert found["mean"]["quality"]["low"] < found["mean"]["quality"]["score"] < found["mean"]["quality"]["high"]


def test_subwords_are_not_compared_with_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = sweep(tmp_path)
    log = tmp_path / "wait-k-wait-k=4-s1" / "results" / "generate-test.jsonl"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line.update(text=" ".join(line["hypothesis"]), reference_text=" ".join(line["reference"]))
    log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert cli.main(["compare", str(table), "milk", "wait-k"]) == 2
    said = capsys.readouterr().err
    assert "these cannot be compared, decode both with --remove-bpe" in said and "wait-k=4" in said
    for words in ([str(tmp_path / "soft--s1" / "results" / "generate-test.jsonl"), str(log)],):
        assert cli.main(["score", *words]) == 2
        assert "cannot be compared" in capsys.readouterr().err


def test_sentences_with_the_same_numbers_and_another_source_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = sweep(tmp_path)
    log = tmp_path / "wait-k-wait-k=4-s1" / "results" / "generate-test.jsonl"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    lines[2]["source"] = ["x"] * len(lines[2]["source"])
    log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert cli.main(["compare", str(table), "milk", "wait-k"]) == 2
    said = capsys.readouterr().err
    assert f"translate different sentences (see sentence {lines[2]['id']})" in said and "wait-k=4" in said


def test_other_sentences_and_missing_logs_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = sweep(tmp_path)
    log = tmp_path / "wait-k-wait-k=4-s1" / "results" / "generate-test.jsonl"
    log.write_text("\n".join(log.read_text(encoding="utf-8").splitlines()[:5]), encoding="utf-8")
    assert cli.main(["compare", str(table), "milk", "wait-k"]) == 2
    assert "translate different sentences" in capsys.readouterr().err
    log.unlink()
    assert cli.main(["compare", str(table), "milk", "wait-k"]) == 2
    assert "are not here: there is no file" in capsys.readouterr().err
