"""The words of many sessions, computed in batches by a few threads.

A step is a word of one session.  In each round a thread takes its share of the steps that wait, gives each of them a
turn (one source token in, one target token out, all sessions of a model in one batch), and puts back those that are not
finished.  So a session with much to write holds up the others for one token at a time, and the more steps wait, the
larger the batches are and the less a step costs.
"""

import threading
from collections import deque
from concurrent.futures import Future
from itertools import groupby
from typing import Any, Callable, Deque, Generic, List, Optional, Sequence, Tuple, TypeVar

from ..generation.schedule import TokenSession, Written

T = TypeVar("T")


class FailedError(Exception):
    """A step failed; the name of the error is its text, and the error its cause."""


class Step(Generic[T]):
    """begin: the session and the source tokens that it has to read.  finish: the result, from what was written.

    Both are called in the thread that computes.  `future` has the result, or a FailedError.
    """

    def __init__(
        self, begin: Callable[[], Tuple[TokenSession, Sequence[int]]], finish: Callable[[List[Written]], T]
    ) -> None:
        self.future: Future[T] = Future()
        self._begin, self._finish = begin, finish
        self._tokens: Optional[Deque[int]] = None
        self._more = False  # the session goes on writing before it reads
        self.written: List[Written] = []

    def begin(self) -> None:
        if self._tokens is None:
            self.session, tokens = self._begin()
            self._tokens = deque(tokens)
            if not tokens:  # a word that the tokeniser drops
                self.note([], False)

    @property
    def batch(self) -> Tuple[int, int]:
        """Steps with the same value take their turn together."""
        return hash(type(self.session)), hash(self.session.batch)

    def token(self) -> Optional[int]:
        """The source token of the next turn; None if the session is still writing."""
        return self._tokens.popleft() if self._tokens and not self._more else None

    def note(self, written: List[Written], more: bool) -> None:
        self.written += written
        self._more = more
        if not more and not self._tokens:
            self.future.set_result(self._finish(self.written))

    def fail(self, error: BaseException) -> None:
        failed = FailedError(type(error).__name__)
        failed.__cause__ = error
        self.future.set_exception(failed)


def play_round(steps: Sequence[Step[Any]]) -> List[Step[Any]]:
    """Give every step one turn; return the unfinished ones."""
    for step in steps:
        _guarded([step], step.begin)
    begun = sorted((step for step in steps if not step.future.done()), key=lambda step: step.batch)
    for _, together in groupby(begun, key=lambda step: step.batch):
        batch = list(together)
        _guarded(batch, lambda: _turn(batch))  # noqa: B023 (called at once)
    return [step for step in steps if not step.future.done()]


def _turn(batch: Sequence[Step[Any]]) -> None:
    sessions = [step.session for step in batch]
    turns = type(sessions[0]).turns(sessions, [step.token() for step in batch])
    for step, turn in zip(batch, turns):
        _guarded([step], lambda: step.note(*turn))  # noqa: B023


def _guarded(steps: Sequence[Step[Any]], function: Callable[[], None]) -> None:
    try:
        function()
    except BaseException as error:  # also a SystemExit, which would end the thread
        for step in steps:
            if not step.future.done():
                step.fail(error)


class Rounds:
    """Computes the steps of all sessions in rounds.  threads: number of worker threads, best one per core."""

    def __init__(self, threads: int) -> None:
        self._waiting: Deque[Step[Any]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, step: Step[T]) -> "Future[T]":
        """Queue a step; it is cancelled after `close`."""
        self._add([step])
        return step.future

    def close(self) -> None:
        """Cancel what waits, and return when the round under way has ended."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._add([])

    def _add(self, steps: Sequence[Step[Any]]) -> None:
        with self._changed:
            self._waiting.extend(steps)
            if self._closed:
                while self._waiting:
                    self._waiting.popleft().future.cancel()
            self._changed.notify(len(steps))

    def _work(self) -> None:
        while self._round():
            pass

    def _round(self) -> bool:
        """False if the rounds have ended."""
        share = self._share()
        if share:
            self._add(play_round(share))
        return bool(share)

    def _share(self) -> List[Step[Any]]:
        """This thread's part of the steps that wait; none if the rounds have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return []
            count = -(-len(self._waiting) // len(self._threads))
            return [self._waiting.popleft() for _ in range(count)]
