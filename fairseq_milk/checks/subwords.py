"""Can subwords be joined to words?  BLEU and latency in words need the subword marker."""

from typing import Any, Dict, Optional

from ..console.errors import UserError
from ..generation.loading import find_codes
from ..text.subwords import find_marker
from .finding import FAIL, OK, WARN, Finding
from .subject import Subject


def check_subwords(subject: Subject) -> Finding:
    """Both sides of the data have the same subword marker, or neither has one."""
    markers = {side: marker(subject, side) for side in ("source", "target")}
    source, target = markers["source"], markers["target"]
    if source and target:
        if source != target:
            return Finding(WARN, f"the source marks its subwords with {source}, the target with {target}", markers)
        return Finding(OK, f"subwords are marked with {source} on both sides", markers)
    if source or target:
        without = "target" if source else "source"
        sentence = f"one side has subwords ({source or target}), the {without} side has none: has its marker been lost?"
        return Finding(FAIL, sentence, markers)
    if has_codes(subject.data):
        sentence = f"there are BPE codes in {subject.data}, but no token of the data is marked as a subword (@@)"
        return Finding(FAIL, sentence, markers)
    return Finding(OK, "no subword markers: every token is a word", markers)


def marker(subject: Subject, side: str) -> Optional[str]:
    """The marker of one side, found in the text: a joined dictionary would show the marker of the other side too."""
    dictionaries: Dict[str, Any] = {"source": subject.task.source_dictionary, "target": subject.task.target_dictionary}
    return find_marker([dictionaries[side][token] for token in pair[side].tolist()] for pair in subject.lines)


def has_codes(data: str) -> bool:
    try:
        return bool(find_codes(data))
    except UserError:
        return False
