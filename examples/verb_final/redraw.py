"""Tables and planes from the figures of earlier studies, results.csv, for example of seeds that were run elsewhere.

    python -m examples.verb_final.redraw examples/verb_final/results/study.csv study/results.csv --out redrawn

Where two files have the same system and seed, the last one counts.
"""

import argparse
import logging
import sys
from pathlib import Path
from typing import Optional, Sequence

from fairseq_milk.sweep.commands import exit_code


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.verb_final.redraw", description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path, nargs="+", metavar="CSV", help="results.csv of a study")
    parser.add_argument("--out", type=Path, required=True, help="folder for tables and pictures")
    options = parser.parse_args(arguments)
    return exit_code("redraw", lambda: redraw(options.tables, options.out))


def redraw(paths: Sequence[Path], out: Path) -> int:
    logging.disable(logging.INFO)
    from examples.verb_final import pictures, results, tables

    found = results.read_csv(paths)
    print(tables.markdown(found))
    for path in tables.write_files(found, out) + pictures.draw_planes(found, out, ("exact", "BLEU")):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
