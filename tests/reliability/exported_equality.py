"""Is an exported model its checkpoint?  Tokens and delays of every mechanism on 1,000 verb-final sentences.

    python -m tests.reliability.exported_equality [--updates 400] [--sentences 1000] [--out FOLDER]

Each mechanism is trained for some updates, so that it translates and waits like a real model, and is then exported in
float32 and in int8; `export` itself compares, and refuses a float32 model that differs in a single sentence.
"""

import argparse
import tempfile
from pathlib import Path
from typing import List, Optional

from examples.verb_final import recipe
from examples.verb_final.corpus import prepare_data
from fairseq_milk.console.progress import Line
from fairseq_milk.live import TextOptions
from fairseq_milk.live.exporting import Comparison, export
from tests.support.fairseq_commands import run
from tests.support.tiny_models import FIVE


def train(mechanism: str, data: Path, folder: Path, updates: int) -> Path:
    """A checkpoint of verb_final's tiny model after some updates."""
    options = {**recipe.TRAIN, **recipe.HEAD, "--attention": mechanism, "--wait-k": 3, "--max-update": updates}
    options.update({"--latency-after": updates // 4, "--noise-ramp": updates, "--validate-interval-updates": updates})
    arguments: List[str] = []
    for name, value in options.items():
        arguments += [name] if value is None else [name, str(value)]
    run("fairseq-train", data / "bin", "--user-dir", "fairseq_milk", *arguments, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


def compare(mechanism: str, data: Path, out: Path, updates: int, sentences: int) -> List[Comparison]:
    """float32 and int8."""
    checkpoint = str(train(mechanism, data, out / f"train-{mechanism}", updates))
    return [
        export(checkpoint, str(data / "bin"), str(out / name), TextOptions(), int8, "test", sentences)
        for name, int8 in ((mechanism, False), (f"{mechanism}-int8", True))
    ]


def main(given: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--mechanisms", nargs="+", default=FIVE)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as scratch:
        out = args.out or Path(scratch)
        data = prepare_data(out, {"train": 20000, "valid": 100, "test": args.sentences}, Line())
        for mechanism in args.mechanisms:
            exact, small = compare(mechanism, data, out, args.updates, args.sentences)
            print(f"{mechanism:<10} float32: {exact}\n{mechanism:<10} int8:    {small}", flush=True)


if __name__ == "__main__":
    main()
