"""AP, AL, LAAL and DAL are SimulEval 1.1's under its convention, to the last printed digit.

SimulEval runs here if it can be imported, else in .venv-simuleval (or in the environment whose Python SIMULEVAL_PYTHON
names).
"""

import importlib.util
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from fairseq_milk.scoring.latency import (
    SIMULEVAL,
    Convention,
    Latency,
    Schedule,
    corpus_latency,
    schedule_latency,
    sentence_latency,
    summarise,
)
from fairseq_milk.scoring.records import Record
from tests.support import simuleval_peer

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("SIMULEVAL_PYTHON", str(ROOT / ".venv-simuleval" / "bin" / "python"))
IN_PROCESS = importlib.util.find_spec("simuleval") is not None

pytestmark = pytest.mark.skipif(
    not IN_PROCESS and not os.path.exists(PYTHON), reason="SimulEval is not installed (scripts/setup.sh --simuleval)"
)


def simuleval(sentences: List[Dict[str, Any]], use_reference_length: bool = True) -> Dict[str, Any]:
    if IN_PROCESS:
        return simuleval_peer.simuleval_scores(sentences, use_reference_length)
    request = json.dumps({"sentences": sentences, "use_reference_length": use_reference_length})
    command = [PYTHON, "-W", "ignore", simuleval_peer.__file__]
    done = subprocess.run(command, input=request, stdout=subprocess.PIPE, check=True, text=True)
    result: Dict[str, Any] = json.loads(done.stdout)
    return result


def assert_agree(ours: Optional[Latency], theirs: Dict[str, float], names: Any = simuleval_peer.METRICS) -> None:
    assert ours is not None
    for name in names:
        assert getattr(ours, name) == pytest.approx(theirs[name], abs=1e-9), name
        if abs(theirs[name] * 1000 % 1 - 0.5) > 1e-6:  # SimulEval prints three digits; a tie may round either way
            assert round(getattr(ours, name), 3) == round(theirs[name], 3), name


def degenerate_schedules() -> List[Schedule]:
    """Delays, |x|, |reference|."""
    return [
        Schedule([1], 1, 1),
        Schedule([1], 5, 1),
        Schedule([1], 1, 9),
        Schedule([0, 0], 3, 2),  # nothing was read
        Schedule([2, 2, 2], 9, 3),  # the source is never exhausted
        Schedule([4] * 12, 4, 2),  # much longer than the reference
        Schedule([1, 1, 1, 4], 4, 40),  # much shorter
        Schedule([9, 9], 4, 2),  # a delay beyond the source
        Schedule([3, 9, 9], 4, 2),
        Schedule([4, 2, 1, 4], 4, 4),  # delays that fall
        Schedule([1] * 200, 1, 1),
        Schedule([300], 300, 1),
    ]


def random_schedules(size: int = 500) -> List[Schedule]:
    rng = random.Random(5)
    schedules = []
    for _ in range(size):
        src_length = rng.randint(1, 40)
        delays = sorted(rng.randint(0, src_length) for _ in range(rng.randint(1, 40)))
        schedules.append(Schedule(delays, src_length, rng.randint(1, 40)))
    return schedules


@pytest.mark.parametrize("schedules", [degenerate_schedules(), random_schedules()], ids=["degenerate", "random"])
def test_same_delays_same_latency(schedules: List[Schedule]) -> None:
    sentences = [
        {"source": ["x"] * s.src_length, "reference": " ".join(["y"] * (s.ref_length or 0)), "delays": s.delays}
        for s in schedules
    ]
    theirs = simuleval(sentences)
    ours = schedule_latency(schedules, "reference")
    for latency, expected in zip(ours, theirs["sentences"]):
        assert_agree(latency, expected)
    assert_agree(summarise(ours, SIMULEVAL).mean, theirs["corpus"])
    theirs = simuleval(sentences, use_reference_length=False)  # --no-use-ref-len; their LAAL is then AL
    for latency, expected in zip(schedule_latency(schedules, "hypothesis"), theirs["sentences"]):
        assert_agree(latency, expected, names=("AP", "AL", "DAL"))


def random_record(i: int) -> Record:
    rng = random.Random(i)

    def subwords(low: int) -> List[str]:
        words = [["a@@"] * rng.choice([0, 0, 1, 3]) + ["b"] for _ in range(rng.randint(low, 12))]
        return [subword for word in words for subword in word]

    source, hypothesis, reference = subwords(1), subwords(0), subwords(0)
    delays = sorted(rng.randint(1, len(source) + 1) for _ in range(len(hypothesis) + 1))
    return Record(i, source, hypothesis, delays, reference)


def played(record: Record) -> Dict[str, Any]:
    """The record of an agent that reads words, splits them into subwords and writes words."""
    sizes = [len(word.split()) for word in " ".join(record.source).replace("@@ ", "@@\t").split(" ")]
    words = [token.replace("@@", "") for token in record.hypothesis if not token.endswith("@@")]
    reads = [g for token, g in zip(record.hypothesis, record.delays) if not token.endswith("@@")]
    return {
        "source": " ".join(record.source).replace("@@ ", "").split(),
        "reference": " ".join(record.reference or []).replace("@@ ", ""),
        "words": words,
        "reads": reads,
        "subwords": sizes,
    }


def test_subwords_played_through_simuleval() -> None:
    """SimulEval sends the words and counts for itself; empty hypotheses are skipped by both."""
    records = [random_record(i) for i in range(200)]
    theirs = simuleval([played(record) for record in records])
    ours = sentence_latency(records, SIMULEVAL)
    assert 0 < sum(latency is None for latency in ours) < 50
    for latency, expected in zip(ours, theirs["sentences"]):
        if latency is None:
            assert expected == {}
        else:
            assert_agree(latency, expected)
    assert_agree(corpus_latency(records, SIMULEVAL).mean, theirs["corpus"])
    without_reference = [{**played(record), "reference": None} for record in records]
    mean = corpus_latency(records, Convention("word", eos=False, length="hypothesis")).mean
    assert_agree(mean, simuleval(without_reference)["corpus"], names=("AP", "AL", "DAL"))
