"""Multi30k task 1: captions of pictures, 29,000 pairs for training.

Tested on test_2016_flickr (fairseq's test), test_2017_flickr (test1) and test_2017_mscoco (test2):

    python -m examples.multi30k.prepare [--pair fr-en] [--base-url FOLDER] [--workers N]

8,000 joint BPE operations and one dictionary per language: a joined dictionary would enlarge the output layer, the most
expensive part on a CPU, by types that are never written.
"""

import sys
from pathlib import Path

from examples.prepare.pipeline import main
from examples.prepare.recipe import Archive, Bitext, Corpus

COMMIT = "2cc0f2d7c615b60e07e2d51bb5edc004444d7e0e"
URL = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw"
LINES = {"train": 29000, "val": 1014, "test_2016_flickr": 1000, "test_2017_flickr": 1000, "test_2017_mscoco": 461}

# Bytes and SHA-256 of the files at that commit: git show COMMIT:data/task1/raw/FILE | sha256sum
FILES = {
    "train.de.gz": (637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    "train.en.gz": (568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    "train.fr.gz": (604242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
    "val.de.gz": (24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    "val.en.gz": (21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    "val.fr.gz": (23001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
    "test_2016_flickr.de.gz": (22890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
    "test_2016_flickr.en.gz": (21077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
    "test_2016_flickr.fr.gz": (22310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
    "test_2017_flickr.de.gz": (21471, "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee"),
    "test_2017_flickr.en.gz": (19138, "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074"),
    "test_2017_flickr.fr.gz": (20434, "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496"),
    "test_2017_mscoco.de.gz": (10230, "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338"),
    "test_2017_mscoco.en.gz": (8844, "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58"),
    "test_2017_mscoco.fr.gz": (9751, "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0"),
}


def archive(name: str) -> Archive:
    size, sha256 = FILES[name]
    return Archive(name, size, f"sha256:{sha256}")


def corpus(source: str, target: str) -> Corpus:
    train, valid, test, *more_tests = (
        Bitext(name, f"{name}.{source}.gz", f"{name}.{target}.gz", lines) for name, lines in LINES.items()
    )
    archives = tuple(archive(f"{name}.{language}.gz") for name in LINES for language in (source, target))
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
        more_tests=tuple(more_tests),
    )


CORPORA = tuple(corpus(source, target) for source, target in (("de", "en"), ("fr", "en"), ("en", "de"), ("en", "fr")))

if __name__ == "__main__":
    sys.exit(main(CORPORA, Path(__file__).parent))
