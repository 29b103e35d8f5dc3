"""The recorded results of Multi30k: the document agrees with the figures, and the pictures can be drawn again."""

import json
from pathlib import Path
from typing import List

import pytest

from examples.document import fill
from examples.multi30k import record, tables


def test_every_table_of_results_md_is_that_of_the_recorded_sweep() -> None:
    """If this fails, run `python -m examples.multi30k.record SWEEP`."""
    made = record.tables()
    assert set(made) == {"test", "beams", "val", "noise", "mass"}
    assert fill(record.DOCUMENT, made) == record.DOCUMENT.read_text(encoding="utf-8")


def test_the_pictures_come_from_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: List[List[str]] = []
    monkeypatch.setattr(record, "plot", lambda *words: drawn.append([str(word) for word in words]))
    record.draw()
    pictures = {Path(words[-1]) for words in drawn}
    assert pictures == set(record.KEPT.glob("*.png"))
    inputs = {word.rpartition("=")[2] for words in drawn for word in words[1:-1] if str(record.KEPT) in word}
    assert {Path(name).name for name in inputs} == {"results.csv"} | {path.name for path in record.KEPT.glob("*.jsonl")}


def test_the_text_of_the_data_set_is_not_kept() -> None:
    for path in record.KEPT.glob("*-delays.jsonl"):
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert len(found) == 1000
        assert all(word.isdigit() for line in found for word in [*line["source"], *line["hypothesis"]])


def test_the_checkpoint_that_was_decoded_is_the_best_one(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    line = 'now | INFO | valid | {"valid_loss": "%s", "valid_nll_loss": "%s", "valid_dal": "%s"}\n'
    log.write_text("".join(line % figures for figures in ((3.0, 2.0, 9.0), (2.5, 1.5, 6.0), (2.6, 1.4, 5.0))))
    assert tables.read_validation(log, "a-s1") == ("a-s1", 1.5, 6.0)
