"""What the repository keeps of the study: its figures and its plane in results/, and its tables in RESULTS.md.

A table stands in RESULTS.md between `<!-- table: TITLE -->` and the next `<!-- end -->`; the prose around it is written
by hand.
"""

import re
import shutil
import tempfile
from pathlib import Path
from typing import List, Mapping

from examples.verb_final import pictures, tables
from examples.verb_final.results import Results
from fairseq_milk.files import write_atomically
from fairseq_milk.sweep.commands import RunError

HERE = Path(__file__).resolve().parent
DOCUMENT, STUDY, PLANE = HERE / "RESULTS.md", HERE / "results" / "study.csv", HERE / "results" / "plane.png"
PLACE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def record(found: Results) -> List[Path]:
    """Writes them anew; the paths."""
    made = {title: tables.markdown_table(cells) for title, cells in tables.study_tables(found).items()}
    document = fill(DOCUMENT.read_text(encoding="utf-8"), made)
    with tempfile.TemporaryDirectory() as folder:
        (plane,) = pictures.draw_planes(found, Path(folder), ("exact",))
        shutil.copyfile(plane, PLANE)
    write_atomically(STUDY, tables.as_csv(found))
    write_atomically(DOCUMENT, document)
    return [STUDY, PLANE, DOCUMENT]


def fill(document: str, made: Mapping[str, str]) -> str:
    """The document with each table in its place; there must be one place for each."""
    places = [title for _, title, _ in PLACE.findall(document)]
    if sorted(places) != sorted(made):
        raise RunError(f"RESULTS.md has places for the tables {places}, and these were made: {list(made)}")
    return PLACE.sub(lambda place: f"{place[1]}{made[place[2]]}\n{place[3]}", document)
