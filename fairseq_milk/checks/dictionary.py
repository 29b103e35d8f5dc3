"""Do the model, the dictionaries and the binary data have the same vocabulary?"""

from .finding import FAIL, OK, Finding
from .subject import Subject


def check_dictionary(subject: Subject) -> Finding:
    """The embeddings have one row per word of the dictionary, and the data no larger word number."""
    model, task = subject.model, subject.task
    words = {"source": len(task.source_dictionary), "target": len(task.target_dictionary)}
    rows = {"source": model.encoder.embedding.num_embeddings, "target": model.decoder.embedding.num_embeddings}
    largest = {side: max(int(pair[side].max()) for pair in subject.lines) for side in words}
    figures = {"words": words, "rows": rows, "largest": largest}
    for side in words:
        if rows[side] != words[side]:
            return Finding(FAIL, f"the model has {rows[side]} {side} words and the dictionary {words[side]}", figures)
        if largest[side] >= words[side]:
            sentence = (
                f"the {side} data have word number {largest[side]} and the dictionary {words[side]} words: they were "
                "binarised with another dictionary"
            )
            return Finding(FAIL, sentence, figures)
    sentence = f"{words['source']} source and {words['target']} target words, in the model and in the data"
    return Finding(OK, sentence, figures)
