"""A sweep without training: random figures and schedules in the files that a real sweep leaves behind."""

import json
import math
import random
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.table import Result, write_results

WORDS = ["ein", "Ha@@", "us", "steht", "am", "Wa@@", "ld", "und", "fällt", "um", "."]
Grids = Dict[str, Tuple[str, List[float]]]
GRIDS: Grids = {
    "soft": ("", [0.0]),
    "milk": ("latency-weight", [0.05, 0.1, 0.2, 0.4]),
    "wait-k": ("wait-k", [2, 4, 6, 8]),
}


def records(wait: int, accuracy: float = 0.9, size: int = 12, words: Optional[Sequence[str]] = None) -> List[Record]:
    """The same sentences each time.  The first delay is within 2 of `wait`; attention is spread over what was read."""
    made = []
    for i in range(size):
        rng = random.Random(i)
        source = list(words or rng.choices(WORDS, k=rng.randint(4, 10)))
        hypothesis = [word if rng.random() < accuracy else rng.choice(WORDS) for word in source]
        first = max(1, wait + rng.randint(-2, 2))
        delays = [min(j + first, len(source) + 1) for j in range(len(source) + 1)]
        weights = [[rng.random() ** 4 for _ in range(delay)] for delay in delays]
        attention = [[w / sum(row) for w in row] for row in weights]
        made.append(Record(i, source, hypothesis, delays, source, attention))
    return made


def write_log(path: Path, made: Sequence[Record]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(record.to_dict()) for record in made), encoding="utf-8")
    return str(path)


def write_commands(run: Path, option: str, value: float) -> None:
    run.mkdir(exist_ok=True)
    long = " ".join(f"--option-{n} {n}" for n in range(60))
    train = f"fairseq-train data --save-dir {run / 'checkpoints'} --{option} {value} {long}"
    (run / "commands.sh").write_text(f"cd /work\n{train}\nfairseq-generate data > '<log>'\n", encoding="utf-8")


def result(
    system: str = "milk", setting: str = "latency-weight=0.1", bleu: float = 30.0, dal: float = 6.0, **others: Any
) -> Result:
    """A row with plausible figures."""
    row = Result(
        system=system,
        setting=setting,
        seed=1,
        bleu=bleu,
        bleu_low=bleu - 0.8,
        bleu_high=bleu + 0.9,
        dal=dal,
        dal_low=dal - 0.2,
        dal_high=dal + 0.2,
        al=0.8 * dal,
        ap=1 - math.exp(-dal / 6),
        n_sentences=12,
        bleu_signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        latency_signature="unit:subword|eos:yes|len:hyp|version:0.1.0",
        train_seconds=1830.0,
        generate_seconds=12.0,
        warm_start="start-s1" if system == "milk" else "",
        checkpoint=f"{system}-{setting}/checkpoints/checkpoint_best.pt",
        log=f"{system}-{setting}/generate-test.jsonl",
        commit="0123456789abcdef0123456789abcdef01234567",
    )
    return row._replace(**others)


def sweep(folder: Path, seeds: Sequence[int] = (1,), size: int = 12, grids: Optional[Grids] = None) -> Path:
    """results.csv, with a log (of `size` sentences) and the commands of every run.  MILk is above wait-k."""
    rng, results = random.Random(1), []
    for system, (option, values) in (grids or GRIDS).items():
        for seed in seeds:
            for n, value in enumerate(values):
                setting = f"{option}={value}" if option else ""
                lag = {"soft": 11.0, "milk": 9.0 - 1.6 * n, "wait-k": float(value)}[system] + rng.random() / 4
                bleu = 41 - 14 * math.exp(-lag / 2.5) - (1.2 if system == "wait-k" else 0.0) + rng.random() / 3
                run = folder / f"{system}-{setting}-s{seed}"
                log = run / "results" / "generate-test.jsonl"
                write_log(log, records(round(lag), bleu / 45, size))
                write_commands(run, option, value)
                row = result(system, setting, bleu, lag, seed=seed, log=str(log))
                results.append(row._replace(checkpoint=str(run / "checkpoints" / "checkpoint_best.pt")))
    write_commands(folder / "start-s1", "latency-weight", 0.0)
    return write_results(results, folder)[0]


def other_model(folder: Path) -> Path:
    """Write a model as a study with another recipe would leave it."""
    model = folder / "checkpoints" / "checkpoint_best.pt"
    model.parent.mkdir(parents=True)
    model.touch()
    (folder / "settings.json").write_text(json.dumps({"train": ["--other"]}))
    return model
