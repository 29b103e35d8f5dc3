"""The data half of the task: fairseq's `translation` on files that are checked, of which no sentence is dropped."""

import hashlib
import os
from typing import Any, Dict

from fairseq import utils
from fairseq.data.data_utils import infer_language_pair
from fairseq.tasks.translation import TranslationTask
from omegaconf.errors import OmegaConfBaseException

from ..console.errors import UserError, first_line
from ..host.data_files import check_data_files
from ..host.dictionary import QuickDictionary

DICTIONARIES = "dictionaries"  # in the state of the task, as a checkpoint has it


class CheckedTranslationTask(TranslationTask):
    """What is wrong with dictionaries and data sets is said in one sentence that names the file."""

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
        try:
            dictionary: QuickDictionary = QuickDictionary.load(filename)
        except FileNotFoundError as error:
            raise UserError(f"there is no dictionary {filename}: run fairseq-preprocess first") from error
        except Exception as error:  # fairseq's own, of many kinds
            raise UserError(f"{filename} is no dictionary of fairseq-preprocess: {first_line(error)}") from error
        return dictionary

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        languages = {self.cfg.source_lang: self.source_dictionary, self.cfg.target_lang: self.target_dictionary}
        words = {str(language): len(dictionary) for language, dictionary in languages.items()}
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
        """As fairseq's, but sentences that do not fill a multiple of eight are not dropped.

        In training --required-batch-size-multiple is honoured if it is given.  And the batches do not depend on the
        epoch in which they are made: a run that is resumed in its third epoch would go on with other batches than one
        that was never interrupted.
        """
        made_before = self.dataset_to_epoch_iter.get(dataset)
        epoch = kwargs.get("epoch", 1)
        kwargs["epoch"] = 1
        if dataset is not self.datasets.get(self.option("train_subset", "train")):
            kwargs["required_batch_size_multiple"] = 1
        iterator = super().get_batch_iterator(dataset, *args, **kwargs)
        if iterator is not made_before:
            iterator.epoch = max(epoch, 1)
        return iterator

    def filter_indices_by_size(self, indices: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            kept = super().filter_indices_by_size(indices, dataset, *args, **kwargs)
        except Exception as error:  # a sentence that is too long
            raise UserError(str(error)) from error
        if len(kept) == 0:
            raise UserError(
                f"none of the {len(dataset)} sentences is short enough for --max-source-positions and "
                "--max-target-positions"
            )
        return kept

    def option(self, name: str, otherwise: str) -> str:
        """An option of the command, which a task that is used from Python does not have."""
        try:
            return str(getattr(self.cfg, name))
        except OmegaConfBaseException:
            return otherwise

    # ---- the state in a checkpoint ----------------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """Digests of the dictionaries: the parameters of a model mean nothing with others."""
        return {**super().state_dict(), DICTIONARIES: self._digests()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """UserError if the model was trained with other dictionaries.  Older checkpoints do not say."""
        saved = state_dict.get(DICTIONARIES)
        for file, digest in self._digests().items():
            if isinstance(saved, dict) and saved.get(file, digest) != digest:
                path = os.path.join(utils.split_paths(self.cfg.data)[0], file)
                raise UserError(
                    "the checkpoint does not fit the dictionaries: "
                    f"{path} is not the dictionary that the model was trained with"
                )
        super().load_state_dict({name: value for name, value in state_dict.items() if name != DICTIONARIES})

    def _digests(self) -> Dict[str, str]:
        languages = {self.cfg.source_lang: self.source_dictionary, self.cfg.target_lang: self.target_dictionary}
        return {
            f"dict.{language}.txt": hashlib.sha256("\n".join(dictionary.symbols).encode("utf-8")).hexdigest()
            for language, dictionary in languages.items()
        }
