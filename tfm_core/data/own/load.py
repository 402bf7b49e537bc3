"""The splits of sentences of one's own, as the set shared them out."""

from __future__ import annotations

from tfm_core.config.own_tasks import OwnTextTaskConfig
from tfm_core.data.download import Progress
from tfm_core.data.own.task import SPLITS, own_task
from tfm_core.data.text_data import TextData, encoded


def load_own(config: OwnTextTaskConfig, *, seed: int, progress: Progress | None = None) -> TextData:
    """Return the splits of a set on the CPU; they are the set's own, whatever the seed.

    Nothing is downloaded, so ``progress`` is told nothing. Raises ValueError, in a sentence, where
    the set is missing or damaged.
    """
    task = own_task(config)
    train, validation, test = (
        encoded(task, task.splits[split], config.src_len, config.tgt_len) for split in SPLITS
    )
    return TextData(task, train, validation, test)
