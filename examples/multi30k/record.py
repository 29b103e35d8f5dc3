"""What the repository keeps of the sweep: its table, what redraws its pictures, these, and the tables of RESULTS.md.

    python -m examples.multi30k.record examples/multi30k/sweep-de-en

results/ gets results.csv as it is, validation.csv (val in training), the drawn sentences with their attention, and the
schedules of all sentences of two systems with their words replaced by numbers: the text of the data set is not ours.
"""

import argparse
import csv
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from examples.document import fill
from examples.multi30k.tables import TEST_SETS, Validation, all_tables, name, read_validation, read_validations
from fairseq_milk import cli
from fairseq_milk.console.errors import RunError
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.console.files import write_atomically
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.table import read_results

HERE = Path(__file__).resolve().parent
DOCUMENT, KEPT = HERE / "RESULTS.md", HERE / "results"
TABLE, VALIDATION = KEPT / "results.csv", KEPT / "validation.csv"
SHOWN = {"milk": ("milk λ=0.4", "milk-latency-weight=0.4-s1"), "wait-k": ("wait-k k=5", "wait-k-wait-k=5-s1")}
SENTENCES = (453, 692, 882)
PLANE = ("offline", "soft", "wait-k", "milk", "monotonic", "mocha")


def tables() -> Dict[str, List[List[str]]]:
    """From what the repository keeps."""
    return all_tables(read_results(TABLE), read_validations(VALIDATION))


def record(sweep: Path) -> None:
    KEPT.mkdir(exist_ok=True)
    shutil.copyfile(sweep / "results.csv", TABLE)
    logs = sorted(sweep.glob("*/train.log"))
    write_atomically(VALIDATION, as_csv([read_validation(log, log.parent.name) for log in logs]))
    for short, (_, run) in SHOWN.items():
        records = read_generate_log(str(sweep / run / "results" / "generate-test.jsonl")).records
        write_lines(KEPT / f"{short}.jsonl", [record.to_dict() for record in records if record.id in SENTENCES])
        write_lines(KEPT / f"{short}-delays.jsonl", map(schedule_alone, records))
    draw()
    write_atomically(DOCUMENT, fill(DOCUMENT, tables()))


def draw() -> None:
    """The pictures, from what the repository keeps."""
    logs = {
        kind: [f"{label}={KEPT / short}{kind}.jsonl" for short, (label, _) in SHOWN.items()] for kind in ("", "-delays")
    }
    for latency in ("dal", "al", "ap"):
        show = ["--show", *(name(r).replace(" ", "-") for r in read_results(TABLE) if r.system in PLANE)]
        plot("plane", TABLE, "--subset", "test", *show, "--latency", latency, "--out", KEPT / f"{latency}.png")
    for subset in TEST_SETS:
        if subset != "test" and any(r.subset == subset for r in read_results(TABLE)):
            plot("plane", TABLE, "--subset", subset, "--latency", "dal", "--out", KEPT / f"dal-{subset}.png")
    plot("delays", *logs["-delays"], "--out", KEPT / "delays.png")
    for sentence in SENTENCES:
        plot("schedule", *logs[""], "--sentence", sentence, "--out", KEPT / f"schedule-{sentence}.png")


def plot(*words: Any) -> None:
    if cli.main(["plot", *map(str, words)]) != 0:
        raise RunError(f"fairseq-milk plot {' '.join(map(str, words))} failed")


def schedule_alone(record: Record) -> Dict[str, Any]:
    numbers = [[str(number) for number in range(1, len(words) + 1)] for words in (record.source, record.hypothesis)]
    return {"id": record.id, "source": numbers[0], "hypothesis": numbers[1], "delays": record.delays}


def write_lines(path: Path, lines: Any) -> None:
    write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def as_csv(rows: Sequence[Validation]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([Validation._fields, *rows])
    return file.getvalue()


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Keep the results of the sweep in the repository.")
    parser.add_argument("sweep", type=Path, help="its output folder")
    args = parser.parse_args(argv)

    def body() -> int:
        record(args.sweep)
        return 0

    return exit_code("record", body)


if __name__ == "__main__":
    sys.exit(main())
