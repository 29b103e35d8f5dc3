"""Writes the results of the study to the repository: figures and plane to results/, tables to RESULTS.md.

results/schedules.jsonl, of which the schedules are drawn, is the demo's (demo/schedules.jsonl).
"""

import shutil
import tempfile
from pathlib import Path
from typing import List

from examples.document import fill
from examples.verb_final import pictures, tables
from examples.verb_final.results import Results
from fairseq_milk.console.files import write_atomically
from fairseq_milk.scoring.table import as_csv

HERE = Path(__file__).resolve().parent
DOCUMENT, KEPT = HERE / "RESULTS.md", HERE / "results"
STUDY, PLANE, SCHEDULES = KEPT / "study.csv", KEPT / "plane.png", KEPT / pictures.SCHEDULES


def record(found: Results) -> List[Path]:
    """Write the files; returns their paths."""
    document = fill(DOCUMENT, tables.study_tables(found))
    with tempfile.TemporaryDirectory() as folder:
        (plane,) = pictures.draw_planes(found, Path(folder), ("exact",))
        shutil.copyfile(plane, PLANE)
    schedules = pictures.draw_schedules(SCHEDULES, KEPT, ["png"])
    kept = [result._replace(checkpoint="", log="") for result in found.table()]  # those files are not
    write_atomically(STUDY, as_csv(kept, STUDY.parent))
    write_atomically(DOCUMENT, document)
    return [STUDY, PLANE, *schedules, DOCUMENT]
