"""Simultaneous decoding in batches against one sentence at a time: our session, and the SimulEval command.

The models are untrained, so the length of the output is limited to that of the source: every sentence is then written
while it is read, one token per source token.  Batch and session do the same work: their outputs are compared.
"""

from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
from torch import Tensor

from benchmarks.build import Shape, build_model
from benchmarks.corpus import FEW, LANGUAGES, MANY, synthetic
from benchmarks.harness import (
    CORES,
    ROOT,
    SIMULEVAL,
    Bar,
    Check,
    Finished,
    NotMeasuredError,
    Outcome,
    Row,
    Size,
    compare,
    run_command,
)
from benchmarks.words_per_second import build_trainer, command_line
from fairseq_milk.generation import DecodingOptions, StreamingSession, translate

BATCH = 500  # sentences, of `fairseq-generate`
LIMIT = (
    "A token needs 7 million multiplications, 4 of them in the output layer. In a batch of 64 they take 0.16 ms at "
    "88 GFLOP/s, which is what oneDNN reaches with packed weights (62 with torch's own product), of 0.30 ms in all: "
    "the rest is the encoder's steps, the energies, the softmax over 8,000 words and smaller batches towards the "
    "end. A token of the session takes 2.6 ms, half of what it took at commit e45763e, so that products alone would "
    "be 16 times as fast. Tried: log_softmax instead of logsumexp and max (slower). The bar of 20 was set when a token "
    "of the session took twice as long (row session-token, 0.489): against that session the batch is 19.7 times as "
    "fast."
)
TRIED = (
    "By a profile from before weights were packed: five eighths of the command's time are decoding, of it a quarter "
    "each the encoder, the decoder's LSTM layers and the output layer with its normalisation, a sixth the decisions "
    "to READ. The rest is one thread of Python for each sentence: fairseq's own loop, which looks up 26 options of "
    "its configuration per sentence (a seventh of the time), records and strings (a tenth), sacreBLEU (a twentieth). "
    "Tried: batches of 100, 200 and 500. SimulEval's price is that of our own streaming session; the batch is 10 "
    "times as fast. On another machine, with AVX2 instead of AVX512, SimulEval took 96 ms per sentence and the ratio "
    "was 38 (commit 4aaac87)."
)


class Limits(NamedTuple):
    """|y| <= a |x| + b."""

    max_len_a: float = 1.0
    max_len_b: int = 0

    def arguments(self) -> List[Any]:
        return ["--max-len-a", self.max_len_a, "--max-len-b", self.max_len_b]


LIMITS = Limits()
OPTIONS = DecodingOptions(**LIMITS._asdict())
Output = List[Tuple[List[int], List[int]]]  # tokens and delays of each sentence


def in_batch(model: Any, sources: List[Tensor]) -> Output:
    rows = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=model.decoder.dictionary.pad())
    return [(hypothesis.tokens, hypothesis.delays) for hypothesis in translate(model, rows, OPTIONS)]


def in_sessions(model: Any, sources: List[Tensor]) -> Output:
    result: Output = []
    for source in sources:
        session = StreamingSession(model, OPTIONS)
        written = [word for token in source.tolist() for word in session.push(token)]
        result.append(([word.token for word in written], [word.delay for word in written]))
    return result


def batches(size: Size) -> Outcome:
    shape = Shape(B=size.pick(64, 50), J=0, words=size.pick(8000, 200), hidden=size.pick(256, 32))
    model = build_model("milk", shape, energy_bias=0.0).eval()
    shortest, longest = size.pick((6, 16), (2, 5))
    lengths = torch.randint(shortest, longest + 1, (shape.B,)).tolist()
    eos = model.decoder.dictionary.eos()
    sources = [torch.cat((torch.randint(4, shape.words, (n,)), torch.tensor([eos]))) for n in lengths]
    ways = {"batch": lambda: in_batch(model, sources), "session": lambda: in_sessions(model, sources)}
    times = compare(ways, size)
    batch, session = in_batch(model, sources), in_sessions(model, sources)
    checks = [Check("batch / session, sentences per CPU second", times.ratio("session", "batch"), Bar(">=", 20))]
    if times.wall["batch"]:
        checks.append(Check("batch / session, sentences per second, wall", times.ratio("session", "batch", "wall")))
    different = sum(a != b for a, b in zip(batch, session))
    checks.append(Check("sentences with other tokens or delays", different, Bar("<=", 0), ""))
    return Outcome(checks, times.figures(), f"{sum(len(tokens) for tokens, _ in batch)} target tokens")


# ---- SimulEval -------------------------------------------------------------------------------------------------------


def simuleval(size: Size) -> Outcome:
    """Both commands on few and on many sentences: the difference leaves out the start-up.

    With as many threads as cores, the default of both commands.
    """
    if not (SIMULEVAL / "simuleval").exists():
        raise NotMeasuredError("there is no .venv-simuleval: run scripts/setup.sh --simuleval")
    data, hidden = synthetic(size.out, 400), size.pick(256, 32)
    checkpoint, some, threads = untrained_checkpoint(data, hidden), size.pick(100, 10), size.pick(CORES, 1)
    agent = {count: run_simuleval(data, checkpoint, count, threads) for count in (1, some)}
    splits = (("valid", FEW), ("test", MANY))
    batch = {count: run_generate(data, checkpoint, split, threads) for split, count in splits}
    figures = {"simuleval": costs(agent), "fairseq-generate": costs(batch)}
    wall = f"batch / SimulEval, sentences per second, wall on {CORES} cores"
    checks = [
        Check(wall, ratio(figures, lambda f: f["wall ms per sentence"]), Bar(">=", 40)),
        Check("batch / SimulEval, sentences per CPU second", ratio(figures, lambda f: f["CPU ms per sentence"])),
        Check(
            f"wall for {MANY} sentences with start-up",
            ratio(figures, lambda f: f["wall s to start"] + MANY * f["wall ms per sentence"] / 1e3),
        ),
    ]
    return Outcome(checks, figures, f"SimulEval on {some} sentences, which is its price for {MANY} too")


def ratio(figures: Dict[str, Dict[str, float]], cost: Callable[[Dict[str, float]], float]) -> float:
    return cost(figures["simuleval"]) / cost(figures["fairseq-generate"])


def costs(runs: Dict[int, Finished]) -> Dict[str, float]:
    """Seconds per sentence of a command that ran on few and on many sentences."""
    (few, short), (many, long) = sorted(runs.items())
    cpu, wall = ((b - a) / (many - few) for a, b in zip(short[1:], long[1:]))
    start = short.wall - few * wall
    return {"CPU ms per sentence": 1e3 * cpu, "wall ms per sentence": 1e3 * wall, "wall s to start": start}


def untrained_checkpoint(data: Path, hidden: int) -> Path:
    trainer = build_trainer(
        [*command_line("milk", data, 2, hidden, 4000), "--energy-bias", "0", "--no-save-optimizer-state"]
    )
    path = data.parent / f"untrained-{hidden}.pt"
    trainer.save_checkpoint(str(path), {"train_iterator": {"epoch": 1}, "val_loss": None})
    return path


def run_simuleval(data: Path, checkpoint: Path, sentences: int, threads: int) -> Finished:
    """The SimulEval command on that many sentences of the test set."""
    text = {language: data.parent / f"simuleval-{sentences}.{language}" for language in LANGUAGES}
    for language, path in text.items():
        lines = (data.parent / f"test.{language}").read_text().splitlines()[:sentences]
        path.write_text("".join(f"{line}\n" for line in lines))
    command = [SIMULEVAL / "simuleval", "--agent-class", "fairseq_milk.agents.simuleval.MilkAgent"]
    command += ["--source", text["de"], "--target", text["en"], "--output", data.parent / f"simuleval-{sentences}"]
    command += ["--checkpoint", checkpoint, "--data-bin", data, *LIMITS.arguments()]
    return run_command(*command, OMP_NUM_THREADS=str(threads))


def run_generate(data: Path, checkpoint: Path, split: str, threads: int) -> Finished:
    """`fairseq-generate` on a split."""
    command = ["fairseq-generate", data, "--user-dir", ROOT / "fairseq_milk", "--task", "simultaneous_translation"]
    command += ["--path", checkpoint, "--gen-subset", split, "--batch-size", BATCH, "--cpu"]
    command += LIMITS.arguments()
    return run_command(*command, OMP_NUM_THREADS=str(threads))


ROWS: List[Row] = [
    Row("batched", "batched simultaneous decoding, 64 sentences, MILk", "our streaming session", batches, LIMIT),
    Row("simuleval", f"`fairseq-generate`, batches of {BATCH}", "the SimulEval command", simuleval, TRIED),
]
