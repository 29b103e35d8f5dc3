"""`fairseq-train` with `milk_transformer` against fairseq's `transformer`: the row `fairseq-train` for Transformers."""

from pathlib import Path
from typing import List

from benchmarks.harness import ROOT, Outcome, Row, Size
from benchmarks.words_per_second import COMMON, compare_words

LAYERS, HEADS = 3, 4  # those of milk_transformer_small
OURS = f"""--user-dir {ROOT / "fairseq_milk"} --task simultaneous_translation --arch milk_transformer
    --criterion latency_augmented"""
# dropout where ours has it, norms where ours has them
PEER = """--task translation --arch transformer --criterion label_smoothed_cross_entropy
    --attention-dropout 0.2 --activation-dropout 0.2"""

BARS = {"soft": 0.8, "milk": 0.8}  # attention -> words per second, divided by the peer's


def command_line(name: str, data: Path, layers: int, hidden: int, max_tokens: int) -> List[str]:
    """The arguments of `fairseq-train` for "transformer", or an attention with one schedule."""
    if name == "transformer":
        sizes = " ".join(
            f"--{side}-layers {layers} --{side}-embed-dim {hidden} --{side}-ffn-embed-dim {4 * hidden} "
            f"--{side}-attention-heads {HEADS} --{side}-normalize-before"
            for side in ("encoder", "decoder")
        )
        specific = f"{PEER} {sizes}"
    else:
        latency = "--latency-weight 0.1 --latency-after 0 --head-after 0" if name == "milk" else ""
        sizes = f"--encoder-layers {layers} --decoder-layers {layers} --embed-dim {hidden} --ffn-dim {4 * hidden}"
        specific = f"{OURS} --attention {name} {sizes} --attention-heads {HEADS} {latency}"
    return f"{data} {specific} {COMMON} --max-tokens {max_tokens}".split()


def measure(size: Size) -> Outcome:
    return compare_words(size, BARS, "transformer", command_line, LAYERS)


ROWS: List[Row] = [
    Row(
        "transformer-train",
        f"the same with `milk_transformer`, {LAYERS}+{LAYERS} layers of 256, one schedule",
        "fairseq's `transformer`",
        measure,
    )
]
