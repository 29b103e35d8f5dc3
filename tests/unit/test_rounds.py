"""Steps of many sessions in rounds: order, failures and shutdown."""

import threading
from concurrent.futures import CancelledError
from typing import Any, Callable, List, Optional, Sequence

import pytest

from fairseq_milk.generation.schedule import TokenSession, Turn, Written
from fairseq_milk.live.rounds import FailedError, Rounds, Step, play_round


class Counter(TokenSession):
    """Writes `count` tokens after every token that it reads.  Counters of the same kind are computed in one batch."""

    eos = 2
    batches: List[int] = []

    def __init__(self, count: int = 1, kind: str = "good") -> None:
        self.count, self.kind, self.left = count, kind, 0

    @property
    def batch(self) -> str:
        return self.kind

    @classmethod
    def turns(cls, sessions: Sequence["Counter"], tokens: Sequence[Optional[int]]) -> List[Turn]:
        cls.batches.append(len(sessions))
        if sessions[0].kind == "bad":
            raise MemoryError("too large")
        return [one.turn(token) for one, token in zip(sessions, tokens)]

    def turn(self, token: Optional[int]) -> Turn:
        self.left = self.left - 1 if token is None else self.count - 1
        return Turn([Written(7, 1, 0.0)], self.left > 0)

    def read(self, token: int) -> None: ...
    def wants_to_read(self) -> bool:
        return True

    def write(self) -> None: ...


def step(session: Counter, tokens: Sequence[int] = (5,), finish: Callable[[Any], int] = len) -> "Step[int]":
    return Step(lambda: (session, tokens), finish)


@pytest.fixture(autouse=True)
def forget() -> None:
    Counter.batches = []


def test_a_turn_is_one_token_and_what_is_finished_leaves() -> None:
    long, short = step(Counter(3)), step(Counter(1), [5, 6])
    waiting: List[Step[Any]] = [long, short]
    rounds = 0
    while waiting:
        waiting, rounds = play_round(waiting), rounds + 1
    assert (long.future.result(), short.future.result(), rounds) == (3, 2, 3)
    assert Counter.batches == [2, 2, 1]


def test_a_failure_ends_only_the_sessions_of_its_model() -> None:
    good, bad = step(Counter()), step(Counter(kind="bad"))
    unborn: Step[int] = Step(lambda: 1 / 0, len)  # type: ignore[arg-type, return-value]
    mute = step(Counter(), finish=lambda written: 1 // 0)
    assert play_round([bad, unborn, mute, good]) == []
    assert good.future.result() == 1
    for one, name in ((bad, "MemoryError"), (unborn, "ZeroDivisionError"), (mute, "ZeroDivisionError")):
        with pytest.raises(FailedError, match=name):
            one.future.result()


def test_a_word_without_tokens_is_finished() -> None:
    assert play_round([silent := step(Counter(), [])]) == [] and silent.future.result() == 0


def test_threads_share_what_waits_and_end_when_they_are_told() -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> Any:
        held.set()
        assert release.wait(20)
        return Counter(), [5]

    rounds = Rounds(1)
    first: Step[int] = Step(hold, len)
    rounds.submit(first)
    assert held.wait(20)
    others = [rounds.submit(step(Counter(2))) for _ in range(6)]
    release.set()
    assert [other.result(20) for other in others] == [2] * 6 and first.future.result(20) == 1
    assert Counter.batches == [1, 6, 6]
    rounds.close()
    with pytest.raises(CancelledError):
        rounds.submit(step(Counter())).result(20)
