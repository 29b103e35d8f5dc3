"""Two curves at equal DAL: what the paired bootstrap says of curves whose difference is known."""

import json
from pathlib import Path
from typing import List

import numpy as np
import pytest

from examples.multi30k.compare import Curve, common_lags, difference, main
from tests.support.stand_in_sweep import sweep


def test_parallel_curves_differ_by_what_lies_between_them() -> None:
    lags = np.array([[2.0, 2.2], [4.0, 4.4], [8.0, 8.8]])
    first, second = Curve(["a", "b", "c"], lags, 10 + 2 * lags), Curve(["a", "b", "c"], lags + 1, 5 + 2 * (lags + 1))
    both = common_lags(first, second)
    assert both[0].tolist() == [3.0, 3.2] and both[-1].tolist() == [8.0, 8.8]
    assert np.allclose(difference(first, second, both), 5.0)


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
    assert main([str(tmp_path / "results.json"), "wait-k", "again"]) == 0
    said = capsys.readouterr().out
    assert said.count("+0.00 (+0.00 to +0.00)") == said.count("\n| ") and "over 0% of these lags" in said


def test_what_is_no_curve_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep(tmp_path)
    assert main([str(tmp_path / "results.csv"), "milk", "nobody"]) == 2
    assert "a curve needs two points or more" in capsys.readouterr().err
