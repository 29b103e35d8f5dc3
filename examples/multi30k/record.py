"""Writes the results of the sweep to the repository: its table, pictures and their data, and the tables of RESULTS.md.

    python -m examples.multi30k.record examples/multi30k/sweep-de-en
    python -m examples.multi30k.record examples/multi30k/sweep-de-en --precision    # the comparison of precisions alone

results/ gets results.csv, validation.csv (the validation of each training), the drawn sentences with their attention,
and the schedules of all sentences of two systems with numbers instead of words: the text is not ours to publish.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from examples.document import fill
from examples.multi30k.precision import SYSTEMS, precision_table, record_pairs
from examples.multi30k.tables import PLANE, TEST_SETS, all_tables, read_validation, read_validations
from examples.recording import as_csv, merged_results, plot, write_lines
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.console.files import write_atomically
from fairseq_milk.scoring import table
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.table import read_results

HERE = Path(__file__).resolve().parent
DOCUMENT, KEPT = HERE / "RESULTS.md", HERE / "results"
TABLE, VALIDATION = KEPT / "results.csv", KEPT / "validation.csv"
SHOWN = {"milk": ("milk λ=0.4", "milk-latency-weight=0.4-s1"), "wait-k": ("wait-k k=5", "wait-k-wait-k=5-s1")}
SENTENCES = (453, 692, 882)


def tables() -> Dict[str, List[List[str]]]:
    """The tables of RESULTS.md, from the files in results/."""
    made = all_tables(read_results(TABLE), read_validations(VALIDATION))
    return {**made, "precision": precision_table()}


def record(sweep: Path) -> None:
    """Rows of the sweep replace kept rows of the same systems."""
    KEPT.mkdir(exist_ok=True)
    write_atomically(TABLE, table.as_csv(merged_results(TABLE, sweep), KEPT))
    trained = {log.parent.name: read_validation(log, log.parent.name) for log in sorted(sweep.glob("*/train.log"))}
    write_atomically(VALIDATION, as_csv(list({**read_validations(VALIDATION), **trained}.values())))
    for short, (_, run) in SHOWN.items():
        log = sweep / run / "results" / "generate-test.jsonl"
        if not log.exists():
            continue
        records = read_generate_log(str(log)).records
        write_lines(KEPT / f"{short}.jsonl", [record.to_dict() for record in records if record.id in SENTENCES])
        write_lines(KEPT / f"{short}-delays.jsonl", map(schedule_alone, records))
    draw()
    if any(result.system in SYSTEMS for result in read_results(sweep / "results.csv")):
        record_pairs(sweep)


def draw() -> None:
    """Draw the pictures from the files in results/."""
    logs = {
        kind: [f"{label}={KEPT / short}{kind}.jsonl" for short, (label, _) in SHOWN.items()] for kind in ("", "-delays")
    }
    for latency in ("dal", "al", "ap"):
        show = ["--show", *(r.name.replace(" ", "-") for r in read_results(TABLE) if r.system in PLANE)]
        plot("plane", TABLE, "--subset", "test", *show, "--latency", latency, "--out", KEPT / f"{latency}.png")
    for subset in TEST_SETS:
        if subset != "test" and any(r.subset == subset for r in read_results(TABLE)):
            plot("plane", TABLE, "--subset", subset, "--latency", "dal", "--out", KEPT / f"dal-{subset}.png")
    plot("delays", *logs["-delays"], "--out", KEPT / "delays.png")
    for sentence in SENTENCES:
        plot("schedule", *logs[""], "--sentence", sentence, "--out", KEPT / f"schedule-{sentence}.png")


def schedule_alone(record: Record) -> Dict[str, Any]:
    numbers = [[str(number) for number in range(1, len(words) + 1)] for words in (record.source, record.hypothesis)]
    return {"id": record.id, "source": numbers[0], "hypothesis": numbers[1], "delays": record.delays}


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Write the results of the sweep to the repository.")
    parser.add_argument("sweep", type=Path, help="its output folder")
    parser.add_argument("--precision", action="store_true", help="only the systems that compare float32 with bfloat16")
    args = parser.parse_args(argv)

    def body() -> None:
        (record_pairs if args.precision else record)(args.sweep)
        write_atomically(DOCUMENT, fill(DOCUMENT, tables()))

    return exit_code("record", body)


if __name__ == "__main__":
    sys.exit(main())
