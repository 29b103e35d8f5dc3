"""How long the ranks of a data-parallel training wait for the slowest rank, for different orders of the batches.

    python -m benchmarks.balance [--ranks 32] [--update-freq 1] [--batch-size 128]

Batches are sorted by length, so that little is padded, and then shuffled; the ranks take them in turn, and an update
ends when the longest batch has been computed.  The work of a batch is the number of steps of the recurrent loops: the
source and target tokens of its longest sentences.  The figure is the work of the slowest rank divided by that of the
mean rank, averaged over the updates of an epoch: the cost of waiting.  Batches are drawn by fairseq's own iterator,
with and without --grouped-shuffling, which shuffles groups of as many batches as there are ranks.
"""

import argparse
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np
from fairseq.data.iterators import EpochBatchIterator
from torch.utils.data import Dataset

from benchmarks.harness import Bar, Check, Outcome, Row, Size

SEED = 1
# German subwords per sentence with EOS in the training set of Multi30k, from 3 on: how many sentences have so many
MULTI30K = [2, 1, 5, 70, 272, 785, 1286, 1813, 2189, 2502, 2561, 2397, 2294, 2127, 1849, 1557, 1348, 1150, 1002, 743]
MULTI30K += [612, 484, 393, 336, 273, 200, 165, 124, 86, 84, 57, 53, 36, 26, 12, 24, 24, 8, 10, 12, 6, 6, 4, 3, 2, 0, 2]
MULTI30K += [2, 1, 0, 1, 1]
RATIO_SPREAD = 0.17  # standard deviation of log(target length / source length), on Multi30k and on Europarl alike


class Corpus(NamedTuple):
    """Source and target tokens of each pair."""

    source: np.ndarray
    target: np.ndarray

    def up_to(self, longest: int) -> "Corpus":
        kept = np.maximum(self.source, self.target) <= longest
        return Corpus(self.source[kept], self.target[kept])


def translated(source: np.ndarray) -> Corpus:
    """A corpus of these source lengths; the target lengths are the source lengths times a random factor."""
    factor = np.exp(np.random.default_rng(SEED + 1).normal(0.0, RATIO_SPREAD, len(source)))
    return Corpus(source, np.maximum(1, np.rint(source * factor)).astype(int))


def multi30k() -> Corpus:
    return translated(np.repeat(np.arange(3, 3 + len(MULTI30K)), MULTI30K))


def like_wmt(pairs: int = 400_000, mean: float = 28.0, spread: float = 0.6) -> Corpus:
    """Log-normal lengths with the mean of newstest in the paper; Europarl's logarithms have a deviation of 0.58."""
    normal = np.random.default_rng(SEED).normal(np.log(mean) - spread**2 / 2, spread, pairs)
    return translated(np.maximum(2, np.rint(np.exp(normal))).astype(int))


def sorted_batches(corpus: Corpus, size: int) -> List[np.ndarray]:
    """As fairseq's translation task makes them: by source length, and by target length where that is equal."""
    order = np.lexsort((corpus.target, corpus.source))
    return [order[i : i + size] for i in range(0, len(order), size)]


class Unread(Dataset[Any]):
    """A data set without content, to compute the order of the batches."""


def updates(batches: Sequence[np.ndarray], ranks: int, grouped: bool) -> List[List[int]]:
    """The batch that each rank takes in each update of the first epoch; a last one that is not complete is left out."""
    numbers = [[number] for number in range(len(batches))]
    taken = []
    for rank in range(ranks):
        options: Dict[str, Any] = {"num_shards": ranks, "shard_id": rank, "grouped_shuffling": grouped}
        iterator = EpochBatchIterator(Unread(), None, numbers, seed=SEED, **options)
        taken.append(iterator.ordered_batches(epoch=1, fix_batches_to_gpus=False, shuffle=True))
    return [[batch[0] for batch in update] for update in zip(*taken) if all(update)]


def imbalance(corpus: Corpus, size: int, ranks: int, grouped: bool, update_freq: int = 1) -> float:
    """Mean over the updates of max / mean of the ranks' steps; 1.0 if none waits.

    update_freq: batches that a rank adds up before it waits for the others.
    """
    batches = sorted_batches(corpus, size)
    steps = np.array([corpus.source[batch].max() + corpus.target[batch].max() for batch in batches], dtype=float)
    taken = np.array(updates(batches, ranks, grouped))
    taken = taken[: len(taken) // update_freq * update_freq].reshape(-1, update_freq, ranks)
    work = steps[taken].sum(1)
    return float((work.max(1) / work.mean(1)).mean())


def main(given: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="How long the ranks of a training wait for the slowest of them.")
    parser.add_argument("--ranks", type=int, default=32, help="GPUs (32)")
    parser.add_argument("--update-freq", type=int, default=1, help="batches of a rank in an update (1)")
    parser.add_argument("--batch-size", type=int, default=128, help="sentence pairs of a rank (128)")
    args = parser.parse_args(given)
    corpora = {
        "Multi30k": multi30k(),
        "like WMT": like_wmt(),
        "like WMT, at most 98 tokens": like_wmt().up_to(98),
    }
    shape = f"{args.ranks} ranks, {args.update_freq} x {args.batch_size} pairs each"
    print(f"{shape}: work of the slowest over that of the mean rank\n")
    print("| lengths | mean | shuffled | `--grouped-shuffling` |\n|---|---:|---:|---:|")
    for name, corpus in corpora.items():
        size, ranks, freq = args.batch_size, args.ranks, args.update_freq
        before, after = (imbalance(corpus, size, ranks, grouped, freq) for grouped in (False, True))
        print(f"| {name} | {corpus.source.mean():.1f} | {before:.2f} | {after:.2f} |")
    return 0


def measure(size: Size) -> Outcome:
    """32 ranks with 128 pairs each; a quick run has 4 with 32."""
    ranks, pairs = size.pick((32, 128), (4, 32))
    checks, figures = [], {}
    for name, corpus in {"Multi30k": multi30k(), "like WMT": like_wmt(size.pick(400_000, 5_000))}.items():
        before, after = (imbalance(corpus, pairs, ranks, grouped) for grouped in (False, True))
        figures[name] = {"shuffled": before, "grouped": after}
        checks.append(Check(f"{name}: grouped / shuffled", after / before, Bar("<", 1)))
    return Outcome(checks, figures, f"work of the slowest over that of the mean of {ranks} ranks, simulated")


ROWS: List[Row] = [Row("balance", "data parallel: waiting for the slowest rank, grouped", "shuffled batches", measure)]


if __name__ == "__main__":
    raise SystemExit(main())
