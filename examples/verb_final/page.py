"""Exports the models of the demo for `fairseq-milk serve`.  With a torch that cannot export, it serves checkpoints."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import List, Sequence

from examples.verb_final.text import SOURCE
from fairseq_milk.console.progress import Line
from fairseq_milk.live import TextOptions
from fairseq_milk.live.exporting import export
from fairseq_milk.live.tracing import can_trace
from fairseq_milk.sweep.runs import Run

KINDS = ("verb-final", "separable", "verb-second")
LENGTHS = range(8, 13)  # words in an example
PER_KIND = 2


def prepare_page(runs: Sequence[Run], data: Path, out: Path, line: Line) -> str:
    """Export the models that have not been exported, if torch can; returns the command that serves them."""
    ordered = sorted(runs, key=lambda run: run.system)  # MILk first
    examples, further = out / "models" / "examples.txt", []
    if can_trace():
        models = [shown(export_model(run, data, out / "models" / run.system, line)) for run in ordered]
    else:
        examples.parent.mkdir(exist_ok=True)
        models, further = [f"{run.system}={shown(run.model)}" for run in ordered], ["--data", shown(data / "bin")]
    examples.write_text("".join(f"{sentence}\n" for sentence in choose_examples(data)), encoding="utf-8")
    program = Path(sys.executable).with_name("fairseq-milk")
    return shlex.join([shown(program), "serve", *models, "--examples", shown(examples), *further])


def export_model(run: Run, data: Path, folder: Path, line: Line) -> Path:
    """The exported folder of a run, written again if the checkpoint is newer."""
    written, checkpoint = folder / "model.json", run.model
    if not written.exists() or written.stat().st_mtime < checkpoint.stat().st_mtime:
        shutil.rmtree(folder, ignore_errors=True)
        comparison = export(str(checkpoint), str(data / "bin"), str(folder), TextOptions())
        line.say(f"{folder}: {comparison}")
    return folder


def choose_examples(data: Path) -> List[str]:
    """Short sentences of the test set, beginning with the kinds for which a translator must wait."""
    names = (f"test.{SOURCE}", "test.kind")
    sentences, kinds = ((data / "text" / name).read_text(encoding="utf-8").splitlines() for name in names)
    chosen: List[str] = []
    for kind in KINDS:
        fits = [text for text, other in zip(sentences, kinds) if other == kind and len(text.split()) in LENGTHS]
        chosen += fits[:PER_KIND]
    return chosen


def shown(path: Path) -> str:
    """The path relative to the current folder if it is inside it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
