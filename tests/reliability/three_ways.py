"""One schedule, three ways to run it: in a batch, in a stream, and in teacher forcing in hard mode.

    python -m tests.reliability.three_ways DATA CHECKPOINT... --sentences 200

compares them for trained models: batches of 1, 7 and 64, the session, and teacher forcing, on the test set.
"""

import argparse
from typing import List, NamedTuple, Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_milk.generation import DecodingOptions, StreamingSession, load_model, translate
from fairseq_milk.models.milk_rnmt import MilkRNMT

SIZES = (64, 7, 1)
PAD, EOS = Dictionary().pad(), Dictionary().eos()
LIMITS = DecodingOptions(max_len_a=1.5, max_len_b=2)


class Output(NamedTuple):
    tokens: List[int]
    delays: List[int]


def collate(sources: Sequence[Sequence[int]], left: bool = True) -> Tensor:
    width = max(map(len, sources))
    rows = [[PAD] * (width - len(s)) + list(s) if left else list(s) + [PAD] * (width - len(s)) for s in sources]
    return torch.tensor(rows)


def batched(
    model: MilkRNMT, sources: Sequence[List[int]], size: int, options: DecodingOptions = LIMITS, left: bool = True
) -> List[Output]:
    outputs: List[Output] = []
    for start in range(0, len(sources), size):
        hypotheses = translate(model, collate(sources[start : start + size], left), options)
        outputs += [Output(h.tokens, h.delays) for h in hypotheses]
    return outputs


def streamed(model: MilkRNMT, source: Sequence[int], options: DecodingOptions = LIMITS) -> Output:
    session = StreamingSession(model, options)
    written = [w for token in source for w in session.push(token)]
    return Output([w.token for w in written], [w.delay for w in written])


def teacher_forced(model: MilkRNMT, source: List[int], tokens: List[int]) -> Output:
    """The delays of the hard schedule for these tokens, and the token that each step would choose."""
    with torch.no_grad():
        logits, extra = model(torch.tensor([source]), None, torch.tensor([[EOS, *tokens[:-1]]]))
    logits[:, :, PAD] = logits[:, 0, EOS] = -float("inf")
    return Output(logits[0].argmax(-1).tolist(), (extra["alpha"][0].argmax(-1) + 1).tolist())


def disagreements(model: MilkRNMT, sources: Sequence[List[int]]) -> List[int]:
    """How many sentences differ from the first way, for each of the others."""
    options = DecodingOptions()
    first, *others = [batched(model, sources, size, options) for size in SIZES]
    others.append([streamed(model, source, options) for source in sources])
    others.append([teacher_forced(model, source, output.tokens) for source, output in zip(sources, first)])
    return [sum(one != other for one, other in zip(first, way)) for way in others]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("checkpoints", nargs="+")
    parser.add_argument("--sentences", type=int, default=200)
    args = parser.parse_args()
    for checkpoint in args.checkpoints:
        model, task = load_model(checkpoint, args.data)
        task.load_dataset("test")
        sources = [pair["source"].tolist() for pair, _ in zip(task.datasets["test"], range(args.sentences))]
        figures = ", ".join(map(str, disagreements(model, sources)))
        print(f"{checkpoint}: {len(sources)} sentences; other than in batches of 64: {figures}", flush=True)
