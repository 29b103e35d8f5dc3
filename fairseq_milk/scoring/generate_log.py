"""Reads the output of fairseq-generate: its log (stdout or a --results-path file), or generate-<subset>.jsonl.

The JSON lines hold the subwords of the model.  A log holds them only without --remove-bpe, --post-process, --bpe and
--tokenizer; otherwise BLEU can be computed from it but no latency, and the result says why.
"""

import json
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from ..text.subwords import find_marker
from .records import Record

_LINE = re.compile(r"([STHDI])-(\d+)(?:\t(.*))?$")
LONGEST_ID = 18  # largest number of digits of a sentence id


class GenerateLog(NamedTuple):
    """The sentences of one generation in the order of their ids.

    no_latency: None, or one sentence on why latency cannot be computed from the records.
    """

    path: str
    records: List[Record]
    no_latency: Optional[str] = None


def read_generate_log(path: str) -> GenerateLog:
    """Read a log or a JSON-lines file, distinguished by the first character.  A ValueError names file and line."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    if next((line for line in lines if line.strip()), "").lstrip().startswith("{"):
        log = GenerateLog(path, _read_json_lines(path, lines))
    else:
        log = _read_log(path, lines)
    if not log.records:
        raise ValueError(f"{path} has no translations: neither H- lines of fairseq-generate nor JSON lines")
    return log._replace(records=sorted(log.records, key=lambda record: record.id))


def _read_json_lines(path: str, lines: Iterable[str]) -> List[Record]:
    records: Dict[int, Record] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            if not isinstance(fields, dict):
                raise ValueError("not a JSON object")
            record = Record.from_dict(fields)
            if record.id in records:
                raise ValueError(f"sentence {record.id} appears a second time")
        except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
            raise ValueError(f"{path}, line {number}: {error}") from None
        records[record.id] = record
    return list(records.values())


def _read_log(path: str, lines: Iterable[str]) -> GenerateLog:
    """Read a log; only the best hypothesis of each sentence counts, as in fairseq's own score."""
    sentences: Dict[int, Dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        match = _LINE.match(line)
        if match is None:
            continue
        if len(match.group(2)) > LONGEST_ID:
            raise ValueError(f"{path}, line {number}: the number of a sentence has {len(match.group(2))} digits")
        kind, sentence = match.group(1), sentences.setdefault(int(match.group(2)), {})
        if kind in "ST" and kind in sentence:
            raise ValueError(f"{path}, line {number}: sentence {match.group(2)} appears a second time")
        if kind not in sentence:
            try:
                sentence[kind] = _parse(kind, match.group(3) or "")
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
    sentences = {i: sentence for i, sentence in sentences.items() if sentence}
    for i, sentence in sentences.items():
        if "H" not in sentence:
            raise ValueError(f"{path}: sentence {i} has no H- line")
    reason = _why_no_latency(path, sentences)
    records = [_record(i, sentence, subwords=reason is None) for i, sentence in sentences.items()]
    if reason is None:
        for record in records:
            try:
                record.check()
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
    return GenerateLog(path, records, reason)


def _parse(kind: str, text: str) -> Any:
    """The content of a line: tokens for S, T and H, a string for D, delays for I.  H and D begin with a score."""
    if kind in "HD":
        score, _, text = text.partition("\t")
        try:
            float(score)
        except ValueError:
            raise ValueError(f"a score should come first on an {kind}- line, got {score!r}") from None
    if kind == "D":
        return text
    if kind != "I":
        return text.split()
    try:
        return [int(delay) for delay in text.split()]
    except ValueError:
        raise ValueError("the delays of an I- line must be whole numbers") from None


def _record(i: int, sentence: Dict[str, Any], subwords: bool) -> Record:
    """The record of a sentence.  Its text is set only if fairseq has detokenised it, which is seen in the D- line."""
    hypothesis, reference = sentence["H"], sentence.get("T")
    detokenised = "D" in sentence and sentence["D"].split() != hypothesis
    return Record(
        id=i,
        source=sentence.get("S", []),
        hypothesis=hypothesis,
        delays=sentence.get("I", []) if subwords else [],
        reference=reference,
        text=sentence["D"] if detokenised else None,
        reference_text=" ".join(reference) if detokenised and reference is not None else None,
    )


def _why_no_latency(path: str, sentences: Dict[int, Dict[str, Any]]) -> Optional[str]:
    """None if the log holds a delay for every subword and the subwords themselves."""
    remedy = "read generate-<subset>.jsonl instead, or generate without --remove-bpe and --bpe"
    for i, sentence in sentences.items():
        if "I" not in sentence:
            return f"{path} has no delays (I- line) for sentence {i}; was it generated with another task?"
        if "S" not in sentence:
            return f"{path} has no S- line for sentence {i}"
    for i, sentence in sentences.items():
        unread = len(sentence["S"]) + 1 - max(sentence["I"], default=0)
        if len(sentence["I"]) - len(sentence["H"]) not in (0, 1) or unread < 0:
            return f"the delays of sentence {i} in {path} do not fit its tokens, which are no longer subwords; {remedy}"
    references = [sentence["T"] for sentence in sentences.values() if "T" in sentence]
    if references and find_marker(s["H"] for s in sentences.values()) and not find_marker(references):
        return f"{path} has subwords in its H- lines but not in its S- and T- lines; {remedy}"
    return None
