"""Reports the results of the runs: prints tables, writes files and draws pictures."""

import textwrap
from pathlib import Path
from typing import List, Sequence

from examples.verb_final import pictures, results, tables
from examples.verb_final.comparison import findings
from fairseq_milk.console.progress import Line
from fairseq_milk.console.tables import text_table
from fairseq_milk.sweep.runs import Run


def report(runs: Sequence[Run], out: Path, line: Line, qualities: Sequence[str] = ("exact",)) -> List[Path]:
    """Report the complete runs.  qualities: columns to draw against latency.  Returns the paths of the files."""
    found = results.collect(runs)
    line.say("\n" + text_table(tables.table(found)) + "\n")
    line.say(textwrap.fill(tables.CAPTION, 110) + "\n")
    large = tables.study_tables(found).get(tables.LARGE)
    if large:
        line.say(text_table(large) + "\n")
    line.say("\n".join(findings(found)) + "\n")
    return tables.write_files(found, out) + pictures.draw_all(found, out, qualities)
