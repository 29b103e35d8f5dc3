"""Is the expected schedule of training the hard schedule of decoding?"""

from torch import Tensor

from ..functional import differentiable_average_lagging, expected_delays
from .energies import changed_energies
from .finding import FAIL, OK, WARN, WITHOUT_HEAD, Finding
from .subject import Subject

SCALES = (1.0, 10.0, 100.0, 1e6)  # factors of the energies; with the last every stop probability is 0 or 1
TOLERANCE = 0.05  # source tokens, once the head is binary
FAR = 1.0  # source tokens between the two schedules of a trained model


def check_agreement(subject: Subject) -> Finding:
    """mean |g_expected - g_hard| must fall to 0 as the head becomes binary; reports its present value and both DALs."""
    if not subject.learned:
        return WITHOUT_HEAD
    schedule = subject.schedule(hard=True)
    g_hard = expected_delays(schedule["alpha"])
    g_expected = [scaled_delays(subject, scale) for scale in SCALES]
    gaps = [float((g - g_hard)[subject.written].abs().mean()) for g in g_expected]
    dal = [
        float(differentiable_average_lagging(g, schedule["src_lengths"], subject.target_lengths).mean())
        for g in (g_expected[0], g_hard)
    ]
    figures = {
        "gap": gaps[0],
        "gap_by_scale": {f"{scale:g}": gap for scale, gap in zip(SCALES, gaps)},
        "expected_dal": dal[0],
        "hard_dal": dal[1],
    }
    apart = f"expected and hard delays are {gaps[0]:.2f} tokens apart (DAL {dal[0]:.2f} and {dal[1]:.2f})"
    if not gaps[-1] < TOLERANCE:
        sentence = f"{apart} and stay {gaps[-1]:.2f} apart when the head is binary: they are not the same schedule"
        return Finding(FAIL, sentence, figures)
    if subject.trained and gaps[0] > FAR:
        sentence = f"{apart}: the trained schedule is not the decoded one, raise --noise or train longer"
        return Finding(WARN, sentence, figures)
    return Finding(OK, f"{apart} and meet as the head becomes binary", figures)


def scaled_delays(subject: Subject, scale: float) -> Tensor:
    """Expected delays with all energies times `scale`.  Probability that passed the end counts as a full read."""
    with changed_energies(subject.heads, lambda e: e * scale):
        schedule = subject.schedule(hard=False)
    alpha, src_lengths = schedule["alpha"], schedule["src_lengths"]
    return expected_delays(alpha) + (1 - alpha.sum(-1)).clamp(min=0) * src_lengths.unsqueeze(1)
