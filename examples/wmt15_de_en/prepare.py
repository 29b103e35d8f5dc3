"""WMT15 German-English as in the paper: 4.5 million pairs, newstest2013 for development, newstest2015 for test.

    python -m examples.wmt15_de_en.prepare [--out FOLDER] [--base-url MIRROR] [--workers N]

Sizes and digests of the archives are those of TensorFlow Datasets and sacreBLEU.  sacreBLEU has only MD5 digests, and
no other list has these archives (examples/prepare/README.md): the command prints their SHA-256, to be added here.

The paper does not describe its cleaning; 1 to 100 words is the limit of the authors' codebase for WMT14 (4,492,447
pairs there).
"""

import sys
from pathlib import Path

from examples.prepare.pipeline import main
from examples.prepare.recipe import Archive, Bitext, Corpus, both

EUROPARL, CRAWL = "wmt13/training-parallel-europarl-v7.tgz", "wmt13/training-parallel-commoncrawl.tgz"
NEWS = "wmt15/training-parallel-nc-v10.tgz"
VALID, TEST = "wmt13/test.tgz", "wmt15/test.tgz"

CORPUS = Corpus(
    name="WMT15 German-English",
    source="de",
    target="en",
    base_url="https://www.statmt.org",
    archives=(
        Archive(EUROPARL, 657632379, "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7"),
        Archive(CRAWL, 918311367, "sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5"),
        Archive(NEWS, 125136590, "sha256:11e053e7ea29e87e69a1ad05e61cb559820947ecec144ea8c1d6cf05017c9602"),
        Archive(VALID, digest="md5:48eca5d02f637af44e85186847141f67"),
        Archive(TEST, digest="md5:67e3beca15e69fe3d36de149da0a96df"),
    ),
    train=(
        both(EUROPARL, "training/europarl-v7.de-en.{de,en}", 1_920_209),
        both(CRAWL, "commoncrawl.de-en.{de,en}", 2_399_123),
        both(NEWS, "news-commentary-v10.de-en.{de,en}", 216_190),
    ),
    valid=(
        Bitext("newstest2013", f"{VALID}!test/newstest2013-src.de.sgm", f"{VALID}!test/newstest2013-src.en.sgm", 3000),
    ),
    test=(
        Bitext(
            "newstest2015",
            f"{TEST}!test/newstest2015-deen-src.de.sgm",
            f"{TEST}!test/newstest2015-deen-ref.en.sgm",
            2169,
        ),
    ),
    merges=32000,
    joined=True,
    types=32000,
    learn_from=2,
    longest=100,
    pairs=4_500_000,
    full_read={"valid": 27.9, "test": 27.9},
)

if __name__ == "__main__":
    sys.exit(main([CORPUS], Path(__file__).parent))
