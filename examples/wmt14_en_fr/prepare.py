"""WMT14 English-French as in the paper: 36.3 million pairs, newstest2012 and 2013 for development, 2014 for test.

    python -m examples.wmt14_en_fr.prepare [--out FOLDER] [--base-url MIRROR] [--workers N]

Sizes and digests of the archives are those of TensorFlow Datasets and sacreBLEU.  sacreBLEU has only MD5 digests, and
no other list has these archives (examples/prepare/README.md): the command prints their SHA-256, to be added here.

The five corpora have 40.8 million pairs; how the paper chose 36.3 million is not stated.  We clean as in wmt15_de_en;
the command prints how many pairs remain.  newstest2014 is the full set of 3,003 sentences (`sacrebleu -t wmt14/full`).
"""

import sys
from pathlib import Path

from examples.prepare.pipeline import main
from examples.prepare.recipe import Archive, Bitext, Corpus, both

EUROPARL, CRAWL = "wmt13/training-parallel-europarl-v7.tgz", "wmt13/training-parallel-commoncrawl.tgz"
UN, NEWS, GIGA = "wmt13/training-parallel-un.tgz", "wmt14/training-parallel-nc-v9.tgz", "wmt10/training-giga-fren.tar"
VALID_2012, VALID_2013, TEST = "wmt12/test.tgz", "wmt13/test.tgz", "wmt14/test-full.tgz"


def newstest(year: int, archive: str, source: str, target: str, lines: int) -> Bitext:
    return Bitext(f"newstest{year}", f"{archive}!{source}.sgm", f"{archive}!{target}.sgm", lines)


CORPUS = Corpus(
    name="WMT14 English-French",
    source="en",
    target="fr",
    base_url="https://www.statmt.org",
    archives=(
        Archive(EUROPARL, 657632379, "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7"),
        Archive(CRAWL, 918311367, "sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5"),
        Archive(UN, 2365634246, "sha256:29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47"),
        Archive(NEWS, 80418416, "sha256:cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485"),
        Archive(GIGA, 2595102720, "sha256:3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a"),
        Archive(VALID_2012, digest="md5:608232d34ebc4ba2ff70fead45674e47"),
        Archive(VALID_2013, digest="md5:48eca5d02f637af44e85186847141f67"),
        Archive(TEST, digest="md5:a8cd784e006feb32ac6f3d9ec7eb389a"),
    ),
    train=(
        both(EUROPARL, "training/europarl-v7.fr-en.{en,fr}", 2_007_723),
        both(CRAWL, "commoncrawl.fr-en.{en,fr}", 3_244_152),
        both(UN, "un/undoc.2000.fr-en.{en,fr}", 12_886_831),
        both(NEWS, "training/news-commentary-v9.fr-en.{en,fr}", 183_251),
        Bitext(
            "giga-fren.release2.fixed",
            f"{GIGA}!giga-fren.release2.fixed.en.gz",
            f"{GIGA}!giga-fren.release2.fixed.fr.gz",
            22_520_400,
        ),
    ),
    valid=(
        newstest(2012, VALID_2012, "test/newstest2012-src.en", "test/newstest2012-src.fr", 3003),
        newstest(2013, VALID_2013, "test/newstest2013-src.en", "test/newstest2013-src.fr", 3000),
    ),
    test=(newstest(2014, TEST, "test-full/newstest2014-fren-src.en", "test-full/newstest2014-fren-ref.fr", 3003),),
    merges=32000,
    joined=True,
    types=32000,
    learn_from=2,
    longest=100,
    pairs=36_300_000,
    full_read={"test": 28.8},
)

if __name__ == "__main__":
    sys.exit(main([CORPUS], Path(__file__).parent))
