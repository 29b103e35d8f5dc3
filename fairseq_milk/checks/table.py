"""All checks of a checkpoint, or of a training before it starts, by their name in the report."""

from typing import Callable, Dict, Iterator, Tuple

from ..console.errors import first_line
from .agreement import check_agreement
from .causality import check_causality
from .dictionary import check_dictionary
from .direction import check_direction
from .finding import FAIL, Finding
from .gradient import check_gradient
from .lengths import check_lengths
from .likelihood import check_likelihood
from .mass import check_mass
from .padding import check_padding
from .policy import check_policy
from .precision import check_precision
from .streaming import check_streaming
from .subject import Subject
from .subwords import check_subwords

CHECKS: Dict[str, Callable[[Subject], Finding]] = {
    "dictionary": check_dictionary,
    "subwords": check_subwords,
    "direction": check_direction,
    "lengths": check_lengths,
    "padding": check_padding,
    "likelihood": check_likelihood,
    "gradient": check_gradient,
    "mass": check_mass,
    "agreement": check_agreement,
    "causality": check_causality,
    "streaming": check_streaming,
    "policy": check_policy,
    "precision": check_precision,
}


def run_checks(subject: Subject) -> Iterator[Tuple[str, Finding]]:
    """The names and findings of all checks, one after the other.  A check that raises has failed."""
    for name, check in CHECKS.items():
        try:
            finding = check(subject)
        except Exception as error:
            finding = Finding(FAIL, f"the check could not be made: {type(error).__name__}: {first_line(error)}")
        yield name, finding
