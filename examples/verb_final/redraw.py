"""Draws tables and planes from the results.csv of earlier studies, for example of seeds that were run elsewhere.

    python -m examples.verb_final.redraw examples/verb_final/results/study.csv study/results.csv --out redrawn
    python -m examples.verb_final.redraw examples/verb_final/results/study.csv study/results.csv --record

If two files have the same system and seed, the last one counts.  --record writes the files of the repository, see
record.py.
"""

import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

from examples.verb_final import program


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.verb_final.redraw", description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path, nargs="+", metavar="CSV", help="results.csv of a study")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="folder for tables and pictures")
    where.add_argument("--record", action="store_true", help="write RESULTS.md and results/ of the repository")
    options = parser.parse_args(arguments)
    return program.run("redraw", "starting fairseq", lambda: redraw(options.tables, options.out))


def redraw(paths: Sequence[Path], out: Optional[Path]) -> int:
    """Draw from the tables; returns the exit code.  out: None for the repository."""
    from examples.verb_final import pictures, record, results, tables

    table = results.read_tables(paths)
    unknown = results.unknown_systems(table)
    if unknown:
        print(f"left out, as recipe.py has no such system: {', '.join(unknown)}", file=sys.stderr)
    found = results.from_table(table)
    print(tables.markdown(found))
    if out is None:
        written = record.record(found)
    else:
        written = tables.write_files(found, out) + pictures.draw_planes(found, out, ("exact", "bleu"))
    print("\n".join(map(str, written)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
