"""The SimulEval 1.1 agent: text to text, word by word.

    simuleval --agent-class fairseq_milk.agents.simuleval.MilkAgent --source test.de --target test.en \\
        --checkpoint checkpoint_best.pt --data-bin data-bin --latency-metrics AL LAAL AP DAL --output out

SimulEval sends words and counts words: subwords are made and put together here.  The words are those of the text that
the model was trained on (after Moses, if that was used), since SimulEval joins what it receives with spaces.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction
from simuleval.utils import entrypoint

from fairseq_milk.console.uncaught import is_command, print_user_errors
from fairseq_milk.generation import (  # not relative: SimulEval's --agent runs this file outside of its package
    WordSession,
    add_knobs,
    check_knobs,
    configure_head,
    decoding_options,
    load_model,
    load_words,
)

if is_command("simuleval"):
    print_user_errors()


@entrypoint
class MilkAgent(TextToTextAgent):
    """Every decision is the session's: the agent carries words to and fro."""

    def __init__(self, args: Namespace) -> None:
        check_knobs(args)
        self.model, task = load_model(args.checkpoint, args.data_bin)
        configure_head(self.model.decoder.attention, args)
        self.source, self.target = load_words(task, args.data_bin, args.bpe_codes)
        self.options = decoding_options(args, max_len_a=args.max_len_a, max_len_b=args.max_len_b)
        super().__init__(args)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        parser.add_argument("--checkpoint", required=True, help="checkpoint of fairseq-train")
        parser.add_argument("--data-bin", required=True, help="directory of fairseq-preprocess (dictionaries)")
        parser.add_argument("--bpe-codes", help="of subword-nmt (default: the *codes* file in the data directory)")
        add_knobs(parser)

    def reset(self) -> None:
        """A new sentence."""
        super().reset()
        self.session = WordSession(self.model, self.source, self.target, self.options)
        self.words_read = 0

    def policy(self) -> Action:
        """One more word has come, perhaps the last; write what can be written now, read on if that is nothing."""
        text = ""
        for word in self.states.source[self.words_read :]:
            text += self.session.push(word)
        self.words_read = len(self.states.source)
        if self.states.source_finished:
            text += self.session.end()
        if not text and not self.session.done:
            return ReadAction()
        return WriteAction(text.strip(), finished=self.session.done)

    def to(self, device: Any, *args: Any, **kwargs: Any) -> None:
        self.model.to(device)
        self.reset()
