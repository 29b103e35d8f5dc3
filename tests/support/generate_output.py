"""The lines that fairseq-generate prints, by the number of their sentence."""

import re
from typing import Dict

Lines = Dict[int, str]


def lines_of(kind: str, text: str) -> Lines:
    """Everything after the first tab of the S-, T-, H-, D-, A- or I- lines."""
    return {int(i): rest for i, rest in re.findall(rf"^{kind}-(\d+)\t(.*)$", text, flags=re.MULTILINE)}


def hypotheses(text: str) -> Lines:
    return {i: line.split("\t", 1)[1] for i, line in lines_of("H", text).items()}
