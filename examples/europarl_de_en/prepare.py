"""Europarl: speeches held in German in the European Parliament, and their English translations.

    python -m examples.europarl_de_en.prepare [--base-url FOLDER] [--workers N]

FOLDER has {train,dev,test}.{de,en}.gz, written to corpus/ by `python -m examples.europarl_de_en.corpus`.  8,000 joint
BPE operations and one dictionary per language, as for Multi30k.  Training pairs with more than 60 Moses tokens (about
50 words) are left out, and the old German spelling of the training text is replaced by that of the held-out debates.
"""

import sys
from pathlib import Path

from examples.europarl_de_en.spelling import NEW_GERMAN
from examples.prepare.pipeline import main
from examples.prepare.recipe import Archive, Bitext, Corpus

HERE = Path(__file__).resolve().parent
NAMES = ("train", "dev", "test")

TRAIN, DEV, TEST = (Bitext(name, f"{name}.de.gz", f"{name}.en.gz", 0) for name in NAMES)
CORPUS = Corpus(
    name="Europarl, speeches held in German",
    source="de",
    target="en",
    base_url=str(HERE / "corpus"),
    archives=tuple(Archive(f"{name}.{language}.gz") for name in NAMES for language in ("de", "en")),
    train=(TRAIN,),
    valid=(DEV,),
    test=(TEST,),
    merges=8000,
    joined=False,
    longest=60,
    respell={"de": NEW_GERMAN},
)

if __name__ == "__main__":
    sys.exit(main((CORPUS,), HERE))
