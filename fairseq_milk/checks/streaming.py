"""Does decoding in batches give the same result as streaming?"""

import copy
from typing import Any, List, Sequence, Tuple

from ..generation import DecodingOptions, StreamingSession, translate
from .finding import FAIL, OK, SKIP, Finding
from .subject import Subject

SENTENCES = 8
OPTIONS = DecodingOptions(max_len_a=1.0, max_len_b=10)  # an untrained model may never write EOS

Written = Tuple[List[int], List[int]]  # tokens and delays


def check_streaming(subject: Subject) -> Finding:
    """A batch and sessions that are fed token by token write the same tokens with the same delays.

    Computed in float64, so that the order of summation does not decide between close candidates.
    """
    if not subject.model.encoder.incremental:
        return Finding(SKIP, "an offline model: its encoder needs the whole source")
    model, dataset, pairs = copy.deepcopy(subject.model).double(), subject.dataset, subject.tried[:SENTENCES]
    batch = dataset.collater(pairs)
    hypotheses = translate(model, batch["net_input"]["src_tokens"], OPTIONS)
    in_batch = dict(zip(batch["id"].tolist(), ((h.tokens, h.delays) for h in hypotheses)))
    different = [pair["id"] for pair in pairs if streamed(model, pair["source"].tolist()) != in_batch[pair["id"]]]
    figures = {"sentences": len(pairs), "different": different}
    if different:
        sentence = f"{len(different)} of {len(pairs)} sentences differ between a batch and a stream (ids: {different})"
        return Finding(FAIL, sentence, figures)
    return Finding(OK, f"{len(pairs)} sentences: a stream gives the tokens and delays of a batch", figures)


def streamed(model: Any, source: Sequence[int]) -> Written:
    session = StreamingSession(model, OPTIONS)
    written = [step for token in source for step in session.push(token)]
    return [step.token for step in written], [step.delay for step in written]
