"""Does decoding in batches give the same result as streaming?"""

import copy
from typing import Any, Dict, List, Sequence, Tuple

from ..generation import DecodingOptions, StreamingSession, TokenSession, translate
from .finding import FAIL, OK, SKIP, Finding
from .subject import Subject

SENTENCES = 8
BATCH = 32
OPTIONS = DecodingOptions(max_len_a=1.0, max_len_b=10)  # an untrained model may never write EOS

Written = Tuple[List[int], List[int]]  # tokens and delays


def check_streaming(subject: Subject) -> Finding:
    """A batch and sessions that are fed token by token write the same tokens with the same delays.

    Computed in float64, so that the order of summation does not decide between close candidates.
    """
    if not subject.model.encoder.incremental:
        return Finding(SKIP, "an offline model: its encoder needs the whole source")
    model, pairs = copy.deepcopy(subject.model).double(), subject.tried[:SENTENCES]
    batched = decoded(model, subject.dataset, pairs, OPTIONS)
    stream = [streamed(StreamingSession(model, OPTIONS), pair["source"].tolist()) for pair in pairs]
    different = [pair["id"] for pair, one, other in zip(pairs, batched, stream) if one != other]
    figures = {"sentences": len(pairs), "different": different}
    if different:
        sentence = f"{len(different)} of {len(pairs)} sentences differ between a batch and a stream (ids: {different})"
        return Finding(FAIL, sentence, figures)
    return Finding(OK, f"{len(pairs)} sentences: a stream gives the tokens and delays of a batch", figures)


def decoded(model: Any, dataset: Any, pairs: Sequence[Any], options: DecodingOptions) -> List[Written]:
    """What is written for sentence pairs of the data set, in their order, when they are decoded in batches."""
    found: Dict[int, Written] = {}
    for start in range(0, len(pairs), BATCH):
        batch = dataset.collater(pairs[start : start + BATCH])
        hypotheses = translate(model, batch["net_input"]["src_tokens"], options)
        found.update(zip(batch["id"].tolist(), ((one.tokens, one.delays) for one in hypotheses)))
    return [found[int(pair["id"])] for pair in pairs]


def streamed(session: TokenSession, source: Sequence[int]) -> Written:
    """What a new session writes if it is fed token by token."""
    written = [step for token in source for step in session.push(token)]
    return [step.token for step in written], [step.delay for step in written]
