"""The SimulEval 1.1 agent: text to text, word by word.

    simuleval --agent-class fairseq_milk.agents.simuleval.MilkAgent --source test.de --target test.en \\
        --checkpoint checkpoint_best.pt --data-bin data-bin --latency-metrics AL LAAL AP DAL --output out

--checkpoint may also be a folder of `fairseq-milk export`, which needs no --data-bin.  SimulEval sends and counts
words; the agent splits them into subwords and joins subwords to words.  The words are those of the training text
(Moses tokens if it was tokenised), since SimulEval joins the output with spaces.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction
from simuleval.utils import entrypoint

from fairseq_milk.console.uncaught import is_command, print_user_errors
from fairseq_milk.live import TextOptions, load  # not relative: --agent runs this file outside of its package
from fairseq_milk.live.knobs import add_knob_arguments, knob_arguments, refuse_other_knobs

if is_command("simuleval"):
    print_user_errors()


@entrypoint
class MilkAgent(TextToTextAgent):
    """Passes words between SimulEval and a session, which makes all decisions."""

    def __init__(self, args: Namespace) -> None:
        self.knobs = knob_arguments(args)
        device = getattr(args, "device", None) or "cpu"
        text = TextOptions(bpe_codes=args.bpe_codes, sentencepiece_model=args.sentencepiece_model)
        self.translator = load(args.checkpoint, args.data_bin, text, device)
        refuse_other_knobs(self.knobs, self.translator.knobs)
        super().__init__(args)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        parser.add_argument("--checkpoint", required=True, help="checkpoint of fairseq-train, or an exported folder")
        parser.add_argument("--data-bin", help="for a checkpoint: directory of fairseq-preprocess (dictionaries)")
        parser.add_argument("--bpe-codes", help="of subword-nmt (default: the *codes* file in the data directory)")
        parser.add_argument("--sentencepiece-model", help="(default: the *.model file in the data directory)")
        add_knob_arguments(parser)

    def reset(self) -> None:
        """Begin a new sentence."""
        super().reset()
        self.session = self.translator.session(**self.knobs)
        self.words_read = 0

    def policy(self) -> Action:
        """Write what the session writes after the new source words; READ if that is nothing."""
        pieces = []
        for word in self.states.source[self.words_read :]:
            pieces += self.session.push(word)
        self.words_read = len(self.states.source)
        if self.states.source_finished:
            pieces += self.session.end()
        if not pieces and not self.session.done:
            return ReadAction()
        return WriteAction("".join(piece.text for piece in pieces).strip(), finished=self.session.done)

    def to(self, device: Any, *args: Any, **kwargs: Any) -> None:
        """Called by SimulEval with its --device, where the model has been loaded."""
        self.reset()
