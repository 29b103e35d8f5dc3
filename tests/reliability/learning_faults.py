"""Check that tests/commands/test_verb_final_learning.py fails for each of three faults in the code.

    python -m tests.reliability.learning_faults [none] [detached] [leak] [lost-mass]

Runs it with the code as it is, when all tests must pass, and with each fault, when its test must fail.  The test
starts fairseq's commands, so the faults are made in their processes:
`python -m tests.reliability.learning_faults --in FAULT fairseq-train ...` is the command with the fault.
"""

import logging
import runpy
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Sequence
from unittest import mock

import pytest

from fairseq_milk.attention import AttentionOptions, Bernoulli
from fairseq_milk.models import milk_rnmt
from fairseq_milk.models.encoder import BidirectionalRNMTEncoder
from fairseq_milk.sweep.runs import Run

TEST = "tests/commands/test_verb_final_learning.py"


def sound() -> None:
    """The code as it is."""


def detach_alpha() -> None:
    """The likelihood and the latency no longer reach the head."""
    stop: Callable[..., Any] = Bernoulli.expected
    Bernoulli.expected = lambda *args: stop(*args).detach()  # type: ignore[assignment, method-assign]


def leak_source() -> None:
    """The encoder states of a prefix depend on the rest of the source."""
    milk_rnmt.RNMTEncoder = BidirectionalRNMTEncoder  # type: ignore[misc, attr-defined]


def lose_mass() -> None:
    """The published closed form without mass preservation."""
    make = Bernoulli.__init__

    def lossy(self: Bernoulli, options: AttentionOptions) -> None:
        make(self, options._replace(exact_alignment=False, preserve_mass=False))

    Bernoulli.__init__ = lossy  # type: ignore[method-assign]


class Fault(NamedTuple):
    make: Callable[[], None]
    seen_by: str  # the test that must fail


FAULTS = {
    "none": Fault(sound, ""),
    "detached": Fault(detach_alpha, "test_milk_waits_no_longer_than_it_must"),
    "leak": Fault(leak_source, "test_guesses_are_guesses"),
    "lost-mass": Fault(lose_mass, "test_alpha_keeps_its_mass"),
}


class Outcomes:
    """A pytest plugin that keeps the outcome of each test; a failure in its set-up is kept as "error"."""

    def __init__(self) -> None:
        self.of: Dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.of[report.location[2]] = report.outcome if report.when == "call" else "error"


def is_seen(name: str) -> bool:
    """Run the test with the fault."""
    commands: Callable[[Run], List[List[str]]] = Run.commands

    def faulty(run: Run) -> List[List[str]]:
        program = [sys.executable, "-m", "tests.reliability.learning_faults", "--in", name]
        return [[*program, *words] for words in commands(run)]

    outcomes = Outcomes()
    with mock.patch.object(Run, "commands", faulty):
        pytest.main([TEST, "-q", "-s", "--tb=line", "-p", "no:cacheprovider", "--timeout", "0"], [outcomes])
    failed = [test for test, outcome in outcomes.of.items() if outcome != "passed"]
    wanted = FAULTS[name].seen_by
    good = outcomes.of.get(wanted) == "failed" if wanted else bool(outcomes.of) and not failed
    print(f"{name}: {', '.join(failed) or 'nothing'} failed, {'as' if good else 'NOT as'} it must be", flush=True)
    return good


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--in"]:
        FAULTS[arguments[1]].make()
        logging.root.handlers.clear()  # of the imports above, so that the log has the command's own form
        sys.argv = list(arguments[2:])
        runpy.run_path(sys.argv[0], run_name="__main__")
        return 0
    unknown = [name for name in arguments if name not in FAULTS]
    if unknown:
        print(f"there is no fault {unknown[0]}; there are {', '.join(FAULTS)}", file=sys.stderr)
        return 2
    return 0 if all([is_seen(name) for name in arguments or FAULTS]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
