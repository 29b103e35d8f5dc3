"""The recorded results of Europarl: the document agrees with the figures, and the logs of trainings are read right."""

import math
from pathlib import Path
from typing import Dict

from examples.document import fill
from examples.europarl_de_en import record, training_curves
from examples.recording import as_csv, merged_results
from fairseq_milk.scoring.table import write_results

LOG = """2026-11-18 01:58:55 | INFO | fairseq_cli.train | Start iterating over samples
2026-11-18 02:01:22 | INFO | train_inner | {"num_updates": "50", "nll_loss": "4.655", "dal": "28.236"}
2026-11-18 02:05:22 | INFO | valid | {"valid_num_updates": "100", "valid_nll_loss": "4.5", "valid_dal": "18.2", \
"valid_expected_nll_loss": "4.4", "valid_expected_dal": "14.7"}
2026-11-18 02:09:22 | INFO | valid | {"valid_num_updates": "200", "valid_nll_loss": "4.1", "valid_dal": "5.6"}
"""


def test_every_table_of_results_md_is_that_of_the_recorded_sweep() -> None:
    """If this fails, run `python -m examples.europarl_de_en.record SWEEP --shown RUN RUN`."""
    assert fill(record.DOCUMENT, record.tables()) == record.DOCUMENT.read_text(encoding="utf-8")


def test_the_course_of_a_training_comes_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "milk-s1" / "train.log"
    log.parent.mkdir()
    log.write_text(LOG, encoding="utf-8")
    train, learned, fixed = training_curves.read_log(log)
    assert (train.run, train.updates, train.expected_dal) == ("milk-s1", 50, 28.236) and math.isnan(train.hard_dal)
    assert learned == ("milk-s1", 100, 14.7, 18.2, 4.4, 4.5)
    assert fixed == ("milk-s1", 200, 5.6, 5.6, 4.1, 4.1), "a fixed schedule is its own expectation"
    kept = tmp_path / "training.csv"
    kept.write_text(as_csv([train, learned, fixed]), encoding="utf-8")
    assert training_curves.read_points(kept)[1:] == [learned, fixed]
    table = training_curves.validation_table([train, learned, fixed], ["milk-s1"])
    assert [row[1] for row in table] == ["updates", "100", "200"]


def test_a_difference_has_a_row_per_point_and_the_mean() -> None:
    def entry(setting: str, *dal: float) -> Dict[str, object]:
        quality = {"score": 0.5, "low": -0.25, "high": 1.25}
        return {"setting": setting, "dal": list(dal), "quality": quality, "above": 0.9}

    found = record.difference_table({"test": {"points": [entry("λ=0.4", 5.0)], "mean": entry("", 4.0, 6.0)}})
    assert found[1:] == [
        ["test, λ=0.4", "5.00", "+0.50 (-0.25 to +1.25)", "90%"],
        ["test, mean over both", "4.00 to 6.00", "+0.50 (-0.25 to +1.25)", "90%"],
    ]


def test_a_point_with_several_seeds_has_a_row_with_each() -> None:
    first = record.read_results(record.TABLE)[0]._replace(system="milk", setting="latency-weight=1")
    runs = [first._replace(seed=seed, bleu=bleu, dal=dal) for seed, bleu, dal in ((2, 18.5, 8.0), (1, 17.5, 7.0))]
    table = record.seeds_table([*runs, first._replace(setting="latency-weight=2")])
    assert table[1:] == [["milk latency-weight=1", "1, 2", "17.5, 18.5", "18.0", "7.00, 8.00", "7.50"]]


def test_a_comparison_without_seed_1_does_not_replace_that_of_the_whole_curves() -> None:
    assert record.comparison_name("test", {1, 2}) == "test"
    assert record.comparison_name("test", {3, 2}) == "test, seeds 2 and 3"


def test_a_recorded_run_is_kept_until_it_is_run_again(tmp_path: Path) -> None:
    first = record.read_results(record.TABLE)[0]
    kept, sweep = tmp_path / "kept" / "results.csv", tmp_path / "sweep"
    for folder in (kept.parent, sweep):
        folder.mkdir()
    write_results([first._replace(system=name, bleu=bleu) for name, bleu in (("b", 3.0), ("c", 4.0))], sweep)
    assert [(r.system, r.bleu) for r in merged_results(kept, sweep)] == [("b", 3.0), ("c", 4.0)], "nothing is kept yet"
    write_results([first._replace(system=name, bleu=bleu) for name, bleu in (("a", 1.0), ("b", 2.0))], kept.parent)
    assert [(r.system, r.bleu) for r in merged_results(kept, sweep)] == [("a", 1.0), ("b", 3.0), ("c", 4.0)]
