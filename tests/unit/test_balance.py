"""benchmarks/balance.py: which batches are compared, and the imbalance of lengths for which it is known."""

import numpy as np
import pytest

from benchmarks import balance
from benchmarks.balance import Corpus


def test_every_batch_is_taken_once() -> None:
    batches = [np.array([number]) for number in range(14)]
    shuffled = balance.updates(batches, 4, grouped=False)
    assert len(shuffled) == 3 and len({batch for update in shuffled for batch in update}) == 12
    grouped = balance.updates(batches, 4, grouped=True)
    assert sorted(sorted(update) for update in grouped) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert grouped != sorted(grouped), "the groups are shuffled"


def test_lengths_whose_imbalance_is_known() -> None:
    """Half of the pairs have 10 + 10 tokens, half 30 + 30: in groups no rank waits."""
    lengths = np.repeat([10, 30], 400)
    corpus = Corpus(lengths, lengths)
    assert balance.imbalance(corpus, 10, 4, grouped=True) == 1.0
    assert balance.imbalance(corpus, 10, 1, grouped=False) == 1.0
    assert 1.0 < balance.imbalance(corpus, 10, 4, grouped=False, update_freq=10) < 1.3, "long and short even out"
    expected = [max(steps) / np.mean(steps) for short in range(5) for steps in [[20] * short + [60] * (4 - short)]]
    chances = np.array([1, 4, 6, 4, 1]) / 16
    assert balance.imbalance(corpus, 10, 4, grouped=False) == pytest.approx(chances @ expected, abs=0.1)


def test_source_and_target_lengths_are_independent_of_each_other() -> None:
    for corpus in (balance.multi30k(), balance.like_wmt(20000)):
        ratio = np.log(corpus.target / corpus.source)
        assert abs(np.corrcoef(corpus.source, ratio)[0, 1]) < 0.1
    multi30k = balance.multi30k().source
    assert len(multi30k) == 29000 and multi30k.mean() == pytest.approx(15.69, abs=0.01)
    assert balance.like_wmt().source.mean() == pytest.approx(28, abs=0.2)
    assert balance.like_wmt(1000).up_to(98).target.max() <= 98


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert balance.main(["--ranks", "2", "--batch-size", "512"]) == 0
    assert "| Multi30k | 15.7 | 1." in capsys.readouterr().out
