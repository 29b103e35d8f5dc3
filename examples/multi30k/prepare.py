"""Multi30k task 1: captions of pictures, 29,000 pairs for training, tested on test_2016_flickr.

    python -m examples.multi30k.prepare [--pair fr-en] [--base-url FOLDER] [--workers N]

8,000 joint BPE operations, and a dictionary for each language: in a joined one many types would never be written, and
the output layer is what costs most on a CPU.
"""

import sys
from pathlib import Path

from examples.prepare.pipeline import main
from examples.prepare.recipe import Archive, Bitext, Corpus

URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
LINES = {"train": 29000, "val": 1014, "test_2016_flickr": 1000}


def corpus(source: str, target: str) -> Corpus:
    train, valid, test = (
        Bitext(name, f"{name}.{source}.gz", f"{name}.{target}.gz", lines) for name, lines in LINES.items()
    )
    archives = tuple(Archive(f"{name}.{language}.gz") for name in LINES for language in (source, target))
    return Corpus(
        name="Multi30k",
        source=source,
        target=target,
        base_url=URL,
        archives=archives,
        train=(train,),
        valid=(valid,),
        test=(test,),
        merges=8000,
        joined=False,
    )


CORPORA = tuple(corpus(source, target) for source, target in (("de", "en"), ("fr", "en"), ("en", "de"), ("en", "fr")))

if __name__ == "__main__":
    sys.exit(main(CORPORA, Path(__file__).parent))
