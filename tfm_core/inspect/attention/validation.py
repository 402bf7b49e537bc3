"""What heads do over the validation set, with the last checkpoint; torch is imported late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention.alignment import (
    AlignmentScore,
    AlignmentTally,
    even_over_source,
    rows_that_write,
    scored_modules,
    true_cells,
)
from tfm_core.inspect.attention.head_roles import relations_of
from tfm_core.inspect.attention.head_statistics import HeadStatistics, Tally
from tfm_core.inspect.attention.inputs import batch_of
from tfm_core.inspect.attention.trained import at_once, data_of, in_all, model_of
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.masks import on_examples
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.probe.capture import ActivationCache

LIMIT = 1000  # examples; the figures of more differ in the third digit
_BATCH = 50


@dataclass(frozen=True, slots=True, eq=False)
class ValidationFigures:
    """The figures of every module at ``step``, on ``n_examples`` of ``n_all``, by module name."""

    step: int
    n_examples: int
    n_all: int
    statistics: Mapping[str, HeadStatistics]
    alignment: Mapping[str, AlignmentScore]


def measured_over_validation(run: Run, limit: int = LIMIT) -> ValidationFigures:
    """Return what the heads of a run do on its first ``limit`` validation examples, or fewer.

    Fewer where maps are large (``trained.in_all``). Sentences are read with the true target. Slow:
    cache it by ``trained.checkpoint_mark``. Raises StudentError without a checkpoint or data.
    """
    from tfm_core.probe.capture import capture
    from tfm_core.probe.snapshot import decoder_input

    model, step = model_of(run)
    data = data_of(run.experiment)
    n_all = len(data.validation)
    n = min(in_all(run.experiment, limit), n_all)
    tally = _Tallies(run.experiment)
    size = at_once(run.experiment, _BATCH)
    for first in range(0, n, size):
        inputs, items = batch_of(run.experiment, data, slice(first, min(n, first + size)))
        with capture(model, only={"weights", "mask"}) as cache:
            model(inputs[0], *map(decoder_input, inputs[1:]))
        tally.add(cache, items)
    return ValidationFigures(
        step=step,
        n_examples=n,
        n_all=n_all,
        statistics={name: part.result() for name, part in tally.statistics.items()},
        alignment={name: part.result() for name, part in tally.alignment.items() if part.n_tokens},
    )


class _Tallies:
    """A tally of each kind for each module."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.kinds = modules_by_kind(experiment)
        self.statistics = {
            name: Tally(kind) for kind, names in self.kinds.items() for name in names
        }
        self.alignment = {name: AlignmentTally() for name in scored_modules(experiment)}

    def add(self, cache: ActivationCache, items: Sequence[Mapping[str, Any]]) -> None:
        maps = {name: value.float().numpy() for name, value in cache.of("weights").items()}
        masks = cache.masks()
        may_attend = {
            name: on_examples(self.experiment, items, name, masks, map_.shape[2:])
            for name, map_ in maps.items()
        }
        for kind, names in self.kinds.items():
            relations = relations_of(self.experiment, items, kind, may_attend[names[0]])
            for name in names:
                self.statistics[name].add(maps[name], relations)
        for name, tally in self.alignment.items():
            for item, map_, allowed in zip(items, maps[name], may_attend[name], strict=True):
                even = even_over_source(self.experiment, item, name, allowed)
                rows = rows_that_write(self.experiment, item, name, map_)
                tally.add(rows, true_cells(item), even)
