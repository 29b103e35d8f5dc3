"""Reads what the runs have left, shows the table, and writes the files and the pictures."""

import logging
import textwrap
from pathlib import Path
from typing import List, Sequence

from fairseq_milk.sweep.progress import Line
from fairseq_milk.sweep.runs import Run


def report(runs: Sequence[Run], out: Path, line: Line, qualities: Sequence[str] = ("exact",)) -> List[Path]:
    """The complete runs.  qualities: what to draw against latency.  Returns the files for the reader."""
    logging.disable(logging.INFO)  # of fairseq, whose import takes some seconds
    from examples.verb_final import pictures, results, tables
    from fairseq_milk.sweep.table import text_table

    found = results.collect(runs)
    line.say("\n" + text_table(tables.table(found)) + "\n")
    line.say(textwrap.fill(tables.CAPTION, 110) + "\n")
    line.say("\n".join(tables.findings(found)) + "\n")
    return tables.write_files(found, out) + pictures.draw_all(found, out, qualities)
