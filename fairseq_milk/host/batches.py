"""The batches of fairseq's iterators: the epoch with which they begin, and their end."""

from typing import Any, Callable

from fairseq.data.iterators import CountingIterator


def begin_with(iterator: Any, epoch: int) -> None:
    """Let an iterator that was built for the first epoch begin with another: its batches are those of the first."""
    iterator.epoch = max(epoch, 1)


def call_at_end(iterator: Any, ended: Callable[[], None]) -> None:
    """Call `ended` after the last batch of each epoch."""
    batches = iterator.next_epoch_itr
    iterator.next_epoch_itr = lambda **options: Ending(batches(**options), ended)


class Ending(CountingIterator):
    """The batches of fairseq's iterator; calls `ended` after the last one."""

    def __init__(self, batches: Any, ended: Callable[[], None]) -> None:
        super().__init__(batches, total=len(batches))
        self.ended = ended

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except StopIteration:
            self.ended()
            raise
