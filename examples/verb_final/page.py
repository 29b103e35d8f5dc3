"""The models of the demo as folders of `fairseq-milk export`, and the command that shows them translating live."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import List, Sequence

from examples.verb_final.text import SOURCE
from fairseq_milk.console.progress import Line
from fairseq_milk.live import TextOptions
from fairseq_milk.live.exporting import export
from fairseq_milk.sweep.runs import Run

KINDS = ("verb-final", "separable", "verb-second")
LENGTHS = range(8, 13)  # words of an example
PER_KIND = 2


def prepare_page(runs: Sequence[Run], data: Path, out: Path, line: Line) -> str:
    """Exports what has not been exported; the command that opens the page."""
    ordered = sorted(runs, key=lambda run: run.system)  # MILk first
    models = [export_model(run, data, out / "models" / run.system, line) for run in ordered]
    examples = out / "models" / "examples.txt"
    examples.write_text("".join(f"{sentence}\n" for sentence in choose_examples(data)), encoding="utf-8")
    program = Path(sys.executable).with_name("fairseq-milk")
    return shlex.join([shown(program), "serve", *map(shown, models), "--examples", shown(examples)])


def export_model(run: Run, data: Path, folder: Path, line: Line) -> Path:
    """Anew if the checkpoint is newer."""
    written, checkpoint = folder / "model.json", run.model
    if not written.exists() or written.stat().st_mtime < checkpoint.stat().st_mtime:
        shutil.rmtree(folder, ignore_errors=True)
        comparison = export(str(checkpoint), str(data / "bin"), str(folder), TextOptions())
        line.say(f"{folder}: {comparison}")
    return folder


def choose_examples(data: Path) -> List[str]:
    """Sentences of the test set that can be read at a glance, the kinds that make a translator wait first."""
    names = (f"test.{SOURCE}", "test.kind")
    sentences, kinds = ((data / "text" / name).read_text(encoding="utf-8").splitlines() for name in names)
    chosen: List[str] = []
    for kind in KINDS:
        fits = [text for text, other in zip(sentences, kinds) if other == kind and len(text.split()) in LENGTHS]
        chosen += fits[:PER_KIND]
    return chosen


def shown(path: Path) -> str:
    """As short as it works from here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
