"""Compares exported models with their checkpoints: tokens and delays of every mechanism on 1,000 verb-final sentences.

    python -m tests.reliability.exported_equality [--updates 400] [--sentences 1000] [--out FOLDER]
        [--families rnmt transformer several]

Each mechanism is trained for some updates, so that it translates and waits like a real model, and is then exported;
`export` itself compares, and refuses a float32 model that differs in a single sentence.
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path
from typing import Dict, List, Optional

from examples.verb_final import recipe
from examples.verb_final.corpus import prepare_data
from fairseq_milk.console.progress import Line
from fairseq_milk.live import TextOptions
from fairseq_milk.live.comparison import Comparison
from fairseq_milk.live.exporting import export
from tests.support.fairseq_commands import run
from tests.support.tiny_models import FIVE, LEARNED

FAMILIES: Dict[str, recipe.Options] = {
    "rnmt": {},
    "transformer": recipe.TRANSFORMER,
    "several": {**recipe.TRANSFORMER, "--schedule-heads": 4},  # a schedule for each head; learned mechanisms
}


def train(family: str, mechanism: str, data: Path, folder: Path, updates: int) -> Path:
    """A checkpoint of verb_final's tiny model after some updates."""
    options = {**recipe.TRAIN, **recipe.HEAD, **FAMILIES[family], "--attention": mechanism, "--wait-k": 3}
    options["--max-update"] = updates
    options.update({"--latency-after": updates // 4, "--noise-ramp": updates, "--validate-interval-updates": updates})
    arguments: List[str] = []
    for name, value in options.items():
        arguments += [name] if value is None else [name, str(value)]
    run("fairseq-train", data / "bin", "--user-dir", "fairseq_milk", *arguments, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


def compare(checkpoint: Path, data: Path, folder: Path, int8: bool, sentences: int) -> Comparison:
    return export(str(checkpoint), str(data / "bin"), str(folder), TextOptions(), int8, "test", sentences)


def main(given: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--training-sentences", type=int, default=6000)
    parser.add_argument("--mechanisms", nargs="+", default=FIVE)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--int8", nargs="*", default=["milk"], help="mechanisms that are exported in int8 too")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as scratch:
        out = args.out or Path(scratch)
        data = prepare_data(out, {"train": args.training_sentences, "valid": 100, "test": args.sentences}, Line())
        for family, mechanism in product(args.families, args.mechanisms):
            if family == "several" and mechanism not in LEARNED:
                continue
            name = f"{family}-{mechanism}"
            checkpoint = train(family, mechanism, data, out / f"train-{name}", args.updates)
            for weights in ("float32", "int8") if mechanism in args.int8 else ("float32",):
                comparison = compare(checkpoint, data, out / f"{name}-{weights}", weights == "int8", args.sentences)
                print(f"{family} {mechanism} {weights}: {comparison}", flush=True)


if __name__ == "__main__":
    main()
