"""The data of the task: fairseq's `translation` with checked files, and without dropped sentences."""

import hashlib
import os
from typing import Any, Dict

from fairseq import utils
from fairseq.data.data_utils import infer_language_pair
from fairseq.tasks.translation import TranslationTask

from ..console.errors import UserError, first_line
from ..console.files import refuse_endless
from ..host.batches import begin_with
from ..host.data_files import check_data_files
from ..host.dictionary import QuickDictionary
from ..host.training_length import option

DICTIONARIES = "dictionaries"  # key in the state of the task, which is saved in checkpoints


class CheckedTranslationTask(TranslationTask):
    """fairseq's translation task, with errors in dictionaries and data sets as a sentence that names the file."""

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "CheckedTranslationTask":
        data = utils.split_paths(cfg.data)[0]
        if not os.path.isdir(data):
            raise UserError(f"there is no data directory {data}: run fairseq-preprocess --destdir {data} first")
        if cfg.source_lang is None and infer_language_pair(data)[0] is None:
            raise UserError(f"there is no data set in {data}: run fairseq-preprocess, or give the languages, -s and -t")
        task: CheckedTranslationTask = super().setup_task(cfg, **kwargs)
        return task

    @classmethod
    def load_dictionary(cls, filename: str) -> QuickDictionary:
        refuse_endless(filename)
        try:
            dictionary: QuickDictionary = QuickDictionary.load(filename)
        except FileNotFoundError as error:
            raise UserError(f"there is no dictionary {filename}: run fairseq-preprocess first") from error
        except Exception as error:  # fairseq raises many types
            raise UserError(f"{filename} is not a dictionary of fairseq-preprocess: {first_line(error)}") from error
        return dictionary

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        words = {language: len(dictionary) for language, dictionary in self._dictionaries().items()}
        try:
            for folder in utils.split_paths(self.cfg.data):
                check_data_files(folder, split, combine, words)
            super().load_dataset(split, epoch, combine, **kwargs)
        except UserError:
            raise
        except FileNotFoundError as error:
            raise UserError(f"there is no data set '{split}' in {self.cfg.data}: run fairseq-preprocess") from error
        except (AssertionError, ValueError) as error:  # sides of different lengths; fairseq cannot open an empty one
            raise UserError(f"the data set '{split}' in {self.cfg.data} is empty or broken: {error}") from error
        if len(self.datasets[split]) == 0:
            raise UserError(f"the data set '{split}' in {self.cfg.data} is empty")

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's iterator, but sentences that do not fill a multiple of eight are not dropped.

        In training --required-batch-size-multiple is used if it is given.  The batches do not depend on the epoch in
        which the iterator is built, so that a resumed run continues with the batches of an uninterrupted one.
        """
        made_before = self.dataset_to_epoch_iter.get(dataset)
        epoch = kwargs.get("epoch", 1)
        kwargs["epoch"] = 1
        if dataset is not self.datasets.get(self.option("train_subset", "train")):
            kwargs["required_batch_size_multiple"] = 1
        iterator = super().get_batch_iterator(dataset, *args, **kwargs)
        if iterator is not made_before:
            begin_with(iterator, epoch)
        return iterator

    def filter_indices_by_size(self, indices: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            kept = super().filter_indices_by_size(indices, dataset, *args, **kwargs)
        except Exception as error:  # raised for a sentence that is too long
            raise UserError(str(error)) from error
        if len(kept) == 0:
            raise UserError(
                f"none of the {len(dataset)} sentences is short enough for --max-source-positions and "
                "--max-target-positions"
            )
        return kept

    def option(self, name: str, otherwise: str) -> str:
        return str(option(self, name, otherwise))

    # ---- the state in a checkpoint ----------------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """The state with digests of the dictionaries, since a model can only be used with its own."""
        return {**super().state_dict(), DICTIONARIES: self._digests()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """UserError if the model was trained with other dictionaries.  Older checkpoints have no digests."""
        saved, own = state_dict.get(DICTIONARIES), self._digests()
        if isinstance(saved, dict) and saved.keys() == own.keys() and list(saved) != list(own):  # source before target
            raise UserError(
                f"the checkpoint does not translate from {self.cfg.source_lang} to {self.cfg.target_lang}: are source "
                "and target language swapped?"
            )
        for file, digest in own.items():
            if isinstance(saved, dict) and saved.get(file, digest) != digest:
                path = os.path.join(utils.split_paths(self.cfg.data)[0], file)
                raise UserError(
                    "the checkpoint does not fit the dictionaries: "
                    f"{path} is not the dictionary that the model was trained with"
                )
        super().load_state_dict({name: value for name, value in state_dict.items() if name != DICTIONARIES})

    def _digests(self) -> Dict[str, str]:
        return {
            f"dict.{language}.txt": hashlib.sha256("\n".join(dictionary.symbols).encode("utf-8")).hexdigest()
            for language, dictionary in self._dictionaries().items()
        }

    def _dictionaries(self) -> Dict[str, Any]:
        """The dictionaries by language, that of the source first."""
        return {self.cfg.source_lang: self.source_dictionary, self.cfg.target_lang: self.target_dictionary}
