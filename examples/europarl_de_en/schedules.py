"""Draws schedule diagrams of dev sentences with clause-final or separable verbs, with English glosses.

    python -m examples.europarl_de_en.schedules 'milk=milk/generate-valid.jsonl' 'wait-k=wait-k/generate-valid.jsonl' \\
        --out FOLDER [--sentences 448 392]
"""

import argparse
import sys
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from examples.europarl_de_en.waiting_report import named
from fairseq_milk.analysis import drawing
from fairseq_milk.analysis.diagram import EOS, Panel, schedule_diagrams
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.records import Record, find_markers
from fairseq_milk.text.subwords import word_starts

GLOSSES = {  # sentence of dev -> its words in English; a separable verb and its particle are marked by a +
    98: "why catch+ Japan or China this ball not +up ?",
    250: "they place+ the sum of 200 years rights-tradition in Europe +there .",
    392: "it must clear be , that these conditions all met be must .",
    448: "we let+ no new division of-Europe +in .",
    490: "thirdly : we hold+ at-the principle of-the differentiated negotiations +fast .",
    531: "we step+ now into a new phase +in .",
    622: "I am very grateful , that Commissioner Verheugen this still once very clear made has .",
    650: "I were very surprised , if they no pressure make would .",
    1240: "that is something , which in this House always unanimously represented was .",
    1596: "an independent counter-check is indispensable , in-order mistakes to avoid .",
    1986: "we ask , that the position of-the Commission clarified is .",
}


def glossed(record: Record, gloss: str, starts: Sequence[bool]) -> List[str]:
    """The source tokens, with a gloss after the first token of each word."""
    words = iter(gloss.split())
    if sum(starts) != len(gloss.split()):
        raise UserError(f"sentence {record.id} has {sum(starts)} words, but its gloss has {len(gloss.split())}")
    labels = []
    for token, begins in zip(record.source, starts):
        english = next(words) if begins else ""
        labels.append(f"{token} ({english})" if english and english != token else token)
    return labels


def panel(records: Sequence[Record], sentence: int, title: str) -> Panel:
    found = next((record for record in records if record.id == sentence), None)
    if found is None:
        raise UserError(f"{title} has no sentence {sentence}")
    starts = word_starts(found.source, find_markers(records).source)
    return Panel.from_record(found, title)._replace(source=[*glossed(found, GLOSSES[sentence], starts), EOS])


def draw(systems: Dict[str, List[Record]], sentence: int, out: Path) -> None:
    figure = schedule_diagrams([panel(records, sentence, name) for name, records in systems.items()])
    drawing.save(figure, out / f"schedule-{sentence}", ["png"])


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Glossed schedule diagrams of sentences of dev.")
    parser.add_argument("systems", nargs="+", metavar="NAME=FILE", help="generations of dev")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    parser.add_argument("--sentences", type=int, nargs="+", choices=GLOSSES, default=list(GLOSSES), help="(all)")
    args = parser.parse_args(argv)

    def body() -> None:
        systems = {name: read_generate_log(path).records for name, path in map(named, args.systems)}
        args.out.mkdir(parents=True, exist_ok=True)
        for sentence in args.sentences:
            draw(systems, sentence, args.out)

    return exit_code("schedules", body)


if __name__ == "__main__":
    sys.exit(main())
