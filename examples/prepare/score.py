"""sacreBLEU of a generation against the untouched text of the test set.

    python -m examples.prepare.score RESULTS/generate-test.jsonl OUT/raw/newstest2015.en

fairseq-generate knows the references as it was given them: tokenised, cut into subwords, put together again.  That may
change a space or lose a rare letter.  These are the references as they were published, as in `sacrebleu -t wmt15`.
"""

import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

import sacrebleu

from fairseq_milk.analysis import read_generate_log
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.sweep.score import read_references


def score(generation: str, references: Path) -> str:
    hypotheses, _ = read_generate_log(generation).texts()
    known = read_references(references)
    if len(hypotheses) != len(known):
        raise UserError(f"{generation} has {len(hypotheses)} sentences, {references} has {len(known)}")
    bleu = sacrebleu.BLEU()
    return f"{bleu.corpus_score(hypotheses, [known]).format()} ({bleu.get_signature()})"


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="sacreBLEU against the untouched references.")
    parser.add_argument("generation", help="generate-test.jsonl, or the log of fairseq-generate")
    parser.add_argument("references", type=Path, help="the target side in OUT/raw/")
    args = parser.parse_args(argv)

    def body() -> int:
        print(score(args.generation, args.references))
        return 0

    return exit_code("score", body)


if __name__ == "__main__":
    sys.exit(main())
