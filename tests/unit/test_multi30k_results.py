"""The recorded results of Multi30k: the document agrees with the figures, and the pictures can be drawn again."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from examples.document import fill
from examples.multi30k import precision, record, tables
from examples.recording import merged_results
from fairseq_milk.scoring.table import as_csv, write_results


def test_every_table_of_results_md_is_that_of_the_recorded_sweep() -> None:
    """If this fails, run `python -m examples.multi30k.record SWEEP`."""
    made = record.tables()
    assert set(made) == {"test", "later", "beams", "val", "noise", "mass", "precision", "families"}
    assert fill(record.DOCUMENT, made) == record.DOCUMENT.read_text(encoding="utf-8")


def test_a_sweep_of_some_systems_replaces_theirs_alone(tmp_path: Path) -> None:
    kept = record.read_results(record.TABLE)
    run = tmp_path / "a-s1"
    paths: Dict[str, Any] = {
        "checkpoint": str(run / "checkpoints" / "best.pt"),
        "log": str(run / "results" / "generate-test.jsonl"),
    }
    write_results([kept[0]._replace(bleu=1.0, **paths), kept[1]._replace(system="another", **paths)], tmp_path)
    merged = merged_results(record.TABLE, tmp_path)
    assert [r.bleu for r in merged] == [1.0, *(r.bleu for r in kept[1:]), kept[1].bleu]
    assert merged[-1].checkpoint == str(record.KEPT / "a-s1" / "checkpoints" / "best.pt")


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


def test_the_test_sets_of_2017_stand_beside_that_of_2016(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the sets of 2017 are those of test with other figures here."""
    kept = record.read_results(record.TABLE)
    later = []
    for number, (subset, suffix) in enumerate((("test1", "-flickr17"), ("test2", "-mscoco17")), start=1):
        for r in kept:
            if r.subset == "test" and r.system in tables.LATER:
                log = r.log.replace("generate-test", f"generate-{subset}")
                later.append(r._replace(system=r.system + suffix, log=log, bleu=r.bleu - number, dal=r.dal + number))
    before, after = tables.later_table(kept), tables.later_table([*kept, *later])
    assert before[0][3:] == ["2017 Flickr: BLEU", "2017 Flickr: DAL", "2017 MSCOCO: BLEU", "2017 MSCOCO: DAL"]
    assert [row[:3] for row in before] == [row[:3] for row in after] and len(after) == 11
    soft = next(r for r in kept if r.system == "soft")
    expected = [f"{soft.bleu - 1:.1f}", f"{soft.dal + 1:.2f}", f"{soft.bleu - 2:.1f}", f"{soft.dal + 2:.2f}"]
    assert next(row for row in after if row[0] == "soft")[3:] == expected
    validations = record.read_validations(record.VALIDATION)
    made = [tables.all_tables(rows, validations) for rows in (kept, [*kept, *later])]
    assert all(made[0][title] == made[1][title] for title in made[0] if title != "later")

    drawn: List[str] = []
    monkeypatch.setattr(record, "plot", lambda *words: drawn.append(Path(words[-1]).name))
    monkeypatch.setattr(record, "read_results", lambda path: [*kept, *later])
    record.draw()
    assert {"dal-test1.png", "dal-test2.png"} <= set(drawn)


def test_the_checkpoint_that_was_decoded_is_the_best_one(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    line = 'now | INFO | valid | {"valid_loss": "%s", "valid_nll_loss": "%s", "valid_dal": "%s"}\n'
    log.write_text("".join(line % figures for figures in ((3.0, 2.0, 9.0), (2.5, 1.5, 6.0), (2.6, 1.4, 5.0))))
    assert tables.read_validation(log, "a-s1") == ("a-s1", 1.5, 6.0)


def test_the_precisions_are_compared_pair_by_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair has been trained and decoded; the cells of the other stay empty."""
    start = next(r for r in record.read_results(record.TABLE) if r.system == "soft")
    lines = [
        {"id": n, "source": ["a", "b"], "hypothesis": ["c"], "reference": ["c"], "delays": [3, 3]} for n in range(5)
    ]
    (tmp_path / "generate-test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pair = [
        start._replace(system=name, seed=seed, bleu=start.bleu + seed, log=str(tmp_path / "generate-test.jsonl"))
        for name in ("soft-short", "soft-short-bf16")
        for seed in (1, 2)
    ]
    (tmp_path / "results.csv").write_text(as_csv([start, *pair], tmp_path))
    monkeypatch.setattr(precision, "TABLE", tmp_path / "precision.csv")
    monkeypatch.setattr(precision, "COMPARISONS", tmp_path / "precision.json")
    empty = precision.precision_table()
    precision.record_pairs(tmp_path)
    made = precision.precision_table()
    assert empty[1:] == [
        [name, *["–"] * 4, *(["", ""] if name in precision.PAIRS else ["–", "–"])] for name, *_ in empty[1:]
    ]
    assert made[1][1:3] == [f"{start.bleu + 1:.1f}, {start.bleu + 2:.1f}", f"{start.bleu + 1.5:.1f}"]
    assert made[1][3:] == [f"{start.dal:.2f}, {start.dal:.2f}", f"{start.dal:.2f}", "", ""]
    assert made[2][5:] == ["+0.00 (+0.00 to +0.00)"] * 2, "the same sentences"
    assert made[3:] == empty[3:]
