"""Simultaneous decoding in batches against one sentence at a time: our session, and the SimulEval command.

The models are untrained, so the length of the output is limited to that of the source: every sentence is then written
while it is read, one token for one.  Batch and session do the same work: their tokens and delays are compared.
"""

from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
from torch import Tensor

from benchmarks.build import Shape, build_model
from benchmarks.corpus import FEW, LANGUAGES, MANY, synthetic
from benchmarks.harness import ROOT, Bar, Check, Finished, NotMeasuredError, Outcome, Row, Size, compare, run_command
from benchmarks.words_per_second import build_trainer, command_line
from fairseq_milk.generation import DecodingOptions, StreamingSession, translate

SIMULEVAL = ROOT / ".venv-simuleval" / "bin"
BATCH = 200  # sentences, of `fairseq-generate`
TRIED = (
    "Of the time of a batch, a third is the product of the output layer, a quarter the LSTM layers, a fifth the READs "
    "and the decisions to READ, which are asked of the whole batch whenever one sentence reads."
)


class Limits(NamedTuple):
    """|y| <= a |x| + b."""

    max_len_a: float = 1.0
    max_len_b: int = 0


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
    checks = [Check("batch / session, sentences a CPU second", times.ratio("session", "batch"), Bar(">=", 5.0))]
    if times.wall["batch"]:
        checks.append(Check("batch / session, sentences a second, wall", times.ratio("session", "batch", "wall")))
    different = sum(a != b for a, b in zip(batch, session))
    checks.append(Check("sentences with other tokens or delays", different, Bar("<=", 0), ""))
    return Outcome(checks, times.figures(), f"{sum(len(tokens) for tokens, _ in batch)} target tokens")


# ---- SimulEval -------------------------------------------------------------------------------------------------------


def simuleval(size: Size) -> Outcome:
    """Both commands on few sentences and on many: the difference is free of what they do first."""
    if not (SIMULEVAL / "simuleval").exists():
        raise NotMeasuredError("there is no .venv-simuleval: run scripts/setup.sh --simuleval")
    data, hidden = synthetic(size.out, 400), size.pick(256, 32)
    checkpoint, some = untrained_checkpoint(data, hidden), size.pick(60, 10)
    agent = {count: run_simuleval(data, checkpoint, count) for count in (1, some)}
    batch = {count: run_generate(data, checkpoint, split) for split, count in (("valid", FEW), ("test", MANY))}
    figures = {"simuleval": costs(agent), "fairseq-generate": costs(batch)}

    def ratio(cost: Callable[[Dict[str, float]], float]) -> float:
        return cost(figures["simuleval"]) / cost(figures["fairseq-generate"])

    whole = ratio(lambda f: f["CPU s to start"] + MANY * f["CPU ms a sentence"] / 1e3)
    checks = [
        Check("batch / SimulEval, sentences a CPU second", ratio(lambda f: f["CPU ms a sentence"])),
        Check("batch / SimulEval, sentences a second, wall", ratio(lambda f: f["wall ms a sentence"]), Bar(">=", 20)),
        Check(f"the same for {MANY} sentences with start-up, CPU", whole),
    ]
    return Outcome(checks, figures, f"SimulEval on {some} sentences, which is its price for {MANY} too")


def costs(runs: Dict[int, Finished]) -> Dict[str, float]:
    """Of a command that has run on few and on many sentences."""
    (few, short), (many, long) = sorted(runs.items())
    cpu, wall = ((b - a) / (many - few) for a, b in zip(short[1:], long[1:]))
    return {"CPU ms a sentence": 1e3 * cpu, "wall ms a sentence": 1e3 * wall, "CPU s to start": short.cpu - few * cpu}


def untrained_checkpoint(data: Path, hidden: int) -> Path:
    trainer = build_trainer(
        [*command_line("milk", data, 2, hidden, 4000), "--energy-bias", "0", "--no-save-optimizer-state"]
    )
    path = data.parent / f"untrained-{hidden}.pt"
    trainer.save_checkpoint(str(path), {"train_iterator": {"epoch": 1}, "val_loss": None})
    return path


def run_simuleval(data: Path, checkpoint: Path, sentences: int) -> Finished:
    """The SimulEval command on that many sentences of the test set."""
    text = {language: data.parent / f"simuleval-{sentences}.{language}" for language in LANGUAGES}
    for language, path in text.items():
        lines = (data.parent / f"test.{language}").read_text().splitlines()[:sentences]
        path.write_text("".join(f"{line}\n" for line in lines))
    command = [SIMULEVAL / "simuleval", "--agent-class", "benchmarks.agent.LimitedAgent"]
    command += ["--source", text["de"], "--target", text["en"], "--output", data.parent / f"simuleval-{sentences}"]
    return run_command(*command, "--checkpoint", checkpoint, "--data-bin", data)


def run_generate(data: Path, checkpoint: Path, split: str) -> Finished:
    """`fairseq-generate` on a split."""
    command = ["fairseq-generate", data, "--user-dir", ROOT / "fairseq_milk", "--task", "simultaneous_translation"]
    command += ["--path", checkpoint, "--gen-subset", split, "--batch-size", BATCH, "--cpu"]
    return run_command(*command, "--max-len-a", LIMITS.max_len_a, "--max-len-b", LIMITS.max_len_b)


ROWS: List[Row] = [
    Row("batched", "batched simultaneous decoding, 64 sentences, MILk", "our streaming session", batches),
    Row("simuleval", f"`fairseq-generate`, batches of {BATCH}", "the SimulEval command", simuleval, TRIED),
]
