"""Settings to query a model in the browser, from its ONNX file: lengths, words, rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tfm_core.choices.config import CorpusTaskConfig, Experiment
from tfm_core.choices.config.shape import TextShape
from tfm_core.data.tasks import data_shape
from tfm_core.data.text.task import Spelling
from tfm_core.data.vocabulary import BOS, PAD, UNK
from tfm_core.probe.items import LENGTH
from tfm_core.trace.source.carried import Carried

How = Literal["write", "slots", "continue", "classes"]
"""write: token after token, behind a source or a picture; slots: all at once; continue: a text;
classes: of a picture."""


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """How a model is asked.

    most_read: tokens of a source, or of a text to continue with <bos>; most_written: tokens of an
    answer. never: ids that are not written. mask_id: of a hidden word, 0 where there is none.
    is_drawn: whether a drawing becomes such a picture.
    """

    how: How
    spelled: Spelling
    most_read: int
    most_written: int
    never: tuple[int, ...] = ()
    mask_id: int = 0
    is_drawn: bool = False


def query_settings(experiment: Experiment, data: Carried) -> QuerySettings:
    """Return how the model of an experiment is asked. data: of ``carried``."""
    shape, spelled = data_shape(experiment), data.spelling or Spelling("", "")
    if data.n_read:
        unit = experiment.task_as(CorpusTaskConfig).unit
        return QuerySettings("continue", spelled, data.n_read, LENGTH[unit], never=(PAD, BOS, UNK))
    if isinstance(shape, TextShape):
        task = experiment.task
        is_slots = experiment.model.family == "encoder-only"
        return QuerySettings(
            "slots" if is_slots else "write",
            spelled,
            most_read=task.max_src_len,
            most_written=task.n_answers,
            mask_id=shape.mask_id if is_slots else 0,
        )
    if data.n_written:
        return QuerySettings("write", spelled, 0, data.n_written)
    is_drawn = shape.channels == 1 and all(name.isdigit() for name in data.classes)
    return QuerySettings("classes", spelled, 0, 0, is_drawn=is_drawn)


def as_json(how: QuerySettings, data: Carried) -> Mapping[str, Any]:
    """Return the page's settings as JSON values."""
    values = {**asdict(how.spelled), **asdict(data), **asdict(how)}
    values["joined"] = values.pop("suffixes")
    for name in ("spelled", "spelling", "has_breaks", "verb", "n_read", "n_written"):
        del values[name]
    return values
