"""Writes an untrained model of Multi30k's size that costs as much as a trained one, for measurements of speed.

    python -m tests.reliability.untrained_model OUT [--int8] [--sentences 200]

Writes the exported folder OUT, and sentences of its words to OUT.txt.  Its weights are random, with two exceptions:
about half of its decisions are WRITE, so that it writes one token per token read; and an output weight is fitted to
the features of the decoder, so that EOS is written at the end of the source and not before.
"""

import argparse
import random
from pathlib import Path
from typing import Any, List, Optional

import torch

from benchmarks.build import Shape, build_model
from benchmarks.live import exported
from fairseq_milk.generation import DecodingOptions, StreamingSession

SHAPE = Shape(B=1, J=0, words=8000, hidden=256)  # milk_rnmt_small with Multi30k's subwords
LENGTH = 12  # words of a sentence, on average
CERTAIN = 20.0  # logit of EOS where it is due; its opposite elsewhere
RIDGE = 1.0  # of the least squares
LOUD = 10.0  # the source's EOS has an embedding so much larger, and so a state that stands out


def sentences(count: int, draw: random.Random) -> List[List[int]]:
    """Random sentences as token numbers with EOS; the dictionary calls the tokens w0, w1, ..."""
    lengths = [draw.randint(LENGTH // 2, LENGTH + LENGTH // 2) for _ in range(count)]
    return [[*(draw.randrange(4, SHAPE.words) for _ in range(length)), 2] for length in lengths]


@torch.no_grad()
def build(sources: List[List[int]]) -> Any:
    model = build_model("milk", SHAPE, energy_bias=0.0).eval()
    model.encoder.embedding.weight[2] *= LOUD
    rows: List[torch.Tensor] = []
    ended: List[float] = []
    output, one_step = model.decoder.output, model.decoder.output.one_step

    def noted(features: torch.Tensor) -> Any:
        rows.append(features.flatten())
        return one_step(features)

    output.one_step = noted
    for source in sources:
        session = StreamingSession(model, DecodingOptions(max_len_a=1.0, max_len_b=3))
        for token in source:
            session.push(token)
            ended += [CERTAIN if session.source_ended else -CERTAIN] * (len(rows) - len(ended))
    del output.one_step
    features, due = torch.cat((torch.stack(rows), torch.ones(len(rows), 1)), dim=1), torch.tensor(ended)
    fitted = torch.linalg.solve(features.T @ features + RIDGE * torch.eye(features.size(1)), features.T @ due)
    output.weight[2], output.bias[2] = fitted[:-1], fitted[-1]
    return model


def main(given: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--sentences", type=int, default=200, help="that it is fitted to, and that are written")
    args = parser.parse_args(given)
    sources = sentences(args.sentences, random.Random(1))
    exported(build(sources), args.out, args.int8)
    lines = (" ".join(f"w{token - 4}" for token in source[:-1]) for source in sources)
    args.out.with_suffix(".txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
