"""How many sentences are left out because they are too long, and how many are empty?"""

from .finding import FAIL, OK, WARN, Finding
from .subject import Subject

TOO_MANY = 0.1  # share of sentences left out above which the check fails


def check_lengths(subject: Subject) -> Finding:
    """Compare all lengths, with EOS, with --max-source-positions and --max-target-positions."""
    sizes = {"source": subject.dataset.src_sizes, "target": subject.dataset.tgt_sizes}
    limits = dict(zip(sizes, subject.task.max_positions()))
    too_long = (sizes["source"] > limits["source"]) | (sizes["target"] > limits["target"])
    empty = (sizes["source"] <= 1) | (sizes["target"] <= 1)
    longest = {side: int(size.max()) for side, size in sizes.items()}
    left_out = float(too_long.mean())
    figures = {"longest": longest, "limits": limits, "left_out": left_out, "empty": float(empty.mean())}
    if left_out > 0:
        sentence = (
            f"{left_out:.1%} of the sentences are longer than --max-source-positions {limits['source']} or "
            f"--max-target-positions {limits['target']} and left out (the longest: {longest['source']} and "
            f"{longest['target']} tokens)"
        )
        return Finding(FAIL if left_out > TOO_MANY else WARN, sentence, figures)
    if empty.any():
        return Finding(WARN, f"{int(empty.sum())} of {len(empty)} sentence pairs have an empty side", figures)
    sentence = f"no sentence is left out: at most {longest['source']} source and {longest['target']} target tokens"
    return Finding(OK, sentence, figures)
