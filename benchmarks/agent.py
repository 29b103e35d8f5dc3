"""The SimulEval agent with the length limit of the benchmark, whose model has not learned when to stop."""

from argparse import Namespace

from simuleval.utils import entrypoint

from benchmarks.decoding import LIMITS
from fairseq_milk.agents.simuleval import MilkAgent


@entrypoint
class LimitedAgent(MilkAgent):
    def __init__(self, args: Namespace) -> None:
        super().__init__(args)
        self.options = self.options._replace(**LIMITS._asdict())
        self.reset()
