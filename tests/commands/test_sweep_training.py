"""`fairseq-milk sweep` from end to end with the real commands: a model, and another that starts from it."""

from pathlib import Path

import pytest

from fairseq_milk import cli
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.latency import corpus_latency
from fairseq_milk.scoring.table import read_results
from tests.support.fairseq_commands import CRITERION, make_corpus

FILE = f"""
data: corpus/bin
train:
  arch: milk_rnmt_tiny
  criterion: {CRITERION}
  attention: milk
  embed-dim: 8
  hidden-size: 8
  energy-dim: 8
  optimizer: adam
  lr: 1e-2
  batch-size: 16
  max-epoch: 1
  no-epoch-checkpoints: true
  log-interval: 1
  cpu: true
generate: {{batch-size: 64, max-len-b: 10, cpu: true}}
systems:
  start: {{}}
  milk: {{after: start, grid: {{latency-weight: [0.5]}}}}
"""


def test_two_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_corpus(tmp_path / "corpus")
    file = tmp_path / "tiny.yaml"
    file.write_text(FILE)
    assert cli.main(["sweep", str(file)]) == 0
    start, milk = read_results(tmp_path / "tiny" / "results.csv")
    assert (start.warm_start, milk.warm_start) == ("", "start-s1")
    for row in (start, milk):
        latency = corpus_latency(read_generate_log(row.log).records).mean
        assert (row.dal, row.al, row.ap) == pytest.approx((latency.DAL, latency.AL, latency.AP))
        assert row.dal_low <= row.dal <= row.dal_high and row.bleu_low <= row.bleu <= row.bleu_high
        assert row.train_seconds > 0 and row.generate_seconds > 0 and Path(row.checkpoint).is_file()
    log = (tmp_path / "tiny" / "milk-latency-weight=0.5-s1" / "train.log").read_text()
    assert f"loading pretrained model from {start.checkpoint}" in log
    assert cli.main(["sweep", str(file)]) == 0
    assert "2 of 2 runs were trained and decoded before" in capsys.readouterr().out
