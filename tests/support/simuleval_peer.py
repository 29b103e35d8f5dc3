"""SimulEval's own latency of given sentences: a function, and a program (JSON in, JSON out) for another environment.

Nothing of fairseq_milk is imported here.
"""

import json
import sys
from typing import Any, Dict, List

METRICS = ("AP", "AL", "LAAL", "DAL")


def simuleval_scores(sentences: List[Dict[str, Any]], use_reference_length: bool = True) -> Dict[str, Any]:
    """SimulEval's latencies of the sentences.

    A sentence has 'source' (words), 'reference' (text or None) and either 'delays', or 'reads' and 'words'.
    'delays' are taken as they are.  'reads' are the source subwords that each of 'words' waits for, 'subwords' how many
    each source word has: SimulEval then sends its words to a small agent and counts the delays itself.
    """
    from simuleval.data.segments import TextSegment
    from simuleval.evaluator.instance import TextToTextInstance
    from simuleval.evaluator.scorers.latency_scorer import LATENCY_SCORERS_DICT

    instances = {}
    for index, sentence in enumerate(sentences):
        instance = TextToTextInstance(index, None, None)
        instance.latency_unit = "word"
        instance.source, instance.reference = sentence["source"], sentence["reference"]
        if "delays" in sentence:
            instance.delays = sentence["delays"]
        else:
            buffer, finished = 0, False
            for word, needed in zip(sentence["words"], sentence["reads"]):
                while buffer < needed and not finished:
                    segment = instance.send_source({})
                    finished = segment.finished
                    buffer += sentence["subwords"][segment.index] + finished  # EOS comes with the last word
                instance.receive_prediction(TextSegment(content=word, finished=False))
        instances[index] = instance
    corpus = {name: LATENCY_SCORERS_DICT[name](use_ref_len=use_reference_length)(instances) for name in METRICS}
    return {"corpus": corpus, "sentences": [instance.metrics for instance in instances.values()]}


if __name__ == "__main__":
    json.dump(simuleval_scores(**json.load(sys.stdin)), sys.stdout)
