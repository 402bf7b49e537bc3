"""An experiment (model, task, training, seed), and the settings that change while it trains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self, TypeVar

from pydantic import Field, model_validator

from tfm_core.choices.config.base import Config, ConfigError, CrossError, setting
from tfm_core.choices.config.model import EncoderDecoderConfig, ModelConfig
from tfm_core.choices.config.task import TASK_FACTS, TaskConfig, tasks_for
from tfm_core.choices.config.text_tasks import TextTaskConfig
from tfm_core.choices.config.training import TrainingConfig
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.variants.forms import family_label
from tfm_core.sentences import Paragraph, StudentError, listed

C = TypeVar("C", bound=Config)


def _usual_training(values: dict[str, Any]) -> TrainingConfig | None:
    """Return the training of an experiment that says none, from its other values."""
    return TrainingConfig() if "task" not in values or values["task"].is_trained_here else None


class Experiment(Config):
    """Model, task, training, seed: the same experiment gives the same curve.

    training: None for a model that nothing here trains: opened, looked at, or trained by the loop
    of another program.
    """

    model: ModelConfig = Field(default_factory=EncoderDecoderConfig)
    task: TaskConfig = Field(default_factory=TextTaskConfig)
    training: TrainingConfig | None = Field(default_factory=_usual_training)
    seed: int = setting("seed", 0, ge=0, le=2**31 - 1)

    @property
    def trained(self) -> TrainingConfig:
        """The settings of its training. Raises StudentError where nothing here trains it."""
        if self.training is None:
            raise StudentError(Paragraph("pretrained/not-trained"))
        return self.training

    @property
    def patches_per_side(self) -> int:
        """Patches in a row of the picture; 0 where words are read."""
        shape = self.task.picture_shape
        return 0 if shape is None else self.model.patches_per_side(shape[-1])

    @property
    def has_cls(self) -> bool:
        """Whether a CLS token is put before the patches or the words."""
        pool = self.model.pool
        return pool is not None and pool.has_cls and self.task.facts.answer == "label"

    def task_as(self, kind: type[C], otherwise: str = "") -> C:
        """Return the task, which must be of a kind. Raises ValueError otherwise, in that sentence.

        Without a sentence the error says which kind is needed.
        """
        if isinstance(self.task, kind):
            return self.task
        if otherwise:
            raise StudentError(otherwise)
        raise StudentError(
            "{label} is of kind {kind}; this needs {needed}.",
            label=self.task.facts.label,
            kind=self.task.kind,
            needed=kind.__name__,
        )

    def model_as(self, family: type[C], otherwise: str = "") -> C:
        """Return the model's settings, which must be of a family; see ``task_as``."""
        if isinstance(self.model, family):
            return self.model
        if otherwise:
            raise StudentError(otherwise)
        raise StudentError(
            "The model is {label}; this needs {needed}.",
            label=family_label(self.model.family),
            needed=family.__name__,
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_family(self)
        if shape := self.task.picture_shape:
            self.model.check_picture(shape[-1], self.task.facts.label)
        _check_max_len(self)
        _check_training(self)
        self.task.check_model(self.model)
        return self


def sequence_len(experiment: Experiment) -> int:
    """Return the longest sequence that one stack of the model sees, special tokens included."""
    if side := experiment.patches_per_side:
        return side**2 + experiment.has_cls
    task = experiment.task
    src, tgt = task.max_src_len, task.n_answers  # + <eos>, or <bos> where it is shifted
    if experiment.task.facts.answer == "label":
        return src + experiment.has_cls
    return experiment.model.joined_len(src, tgt)


def _check_family(experiment: Experiment) -> None:
    family, facts = experiment.model.family, experiment.task.facts
    if family not in facts.families:
        raise CrossError(
            "task.name",
            Paragraph(
                "settings/wrong-family",
                label=family_label(family),
                task=facts.label,
                tasks=listed(TASK_FACTS[name].label for name in tasks_for(family)[:3]),
                families=listed(family_label(name) for name in facts.families),
            ),
        )


def _check_max_len(experiment: Experiment) -> None:
    n_rows = experiment.model.n_positions
    if n_rows is not None and (needed := sequence_len(experiment)) > n_rows:
        raise CrossError(
            "model.max_len",
            Paragraph(
                "settings/max-len",
                label=experiment.task.facts.label,
                needed=needed,
                max_len=n_rows,
            ),
        )


def _check_training(experiment: Experiment) -> None:
    """Raise CrossError where a model cannot be trained as it is said."""
    model, task, training = experiment.model, experiment.task, experiment.training
    if training is None:
        if task.is_trained_here:
            raise CrossError("training", "{label} needs training settings.", label=task.facts.label)
        return
    if not task.is_trained_here:
        raise CrossError("training", Paragraph("pretrained/not-trained"))
    if training.checkpointing and not model.has_blocks:
        raise CrossError(
            "training.checkpointing",
            "{label} has no Transformer blocks; switch checkpointing off.",
            label=family_label(model.family),
        )
    if model.order is not None or model.writes_from_past:
        return
    for name in training.mistakes:  # labels can be wrong only of what writes token by token
        if MISTAKES[name].labels is not None:
            raise CrossError(
                "training.mistakes",
                Paragraph(
                    "settings/labels-mistake",
                    mistake=MISTAKES[name].label,
                    family=family_label(model.family),
                ),
            )


TURNABLE: tuple[str, ...] = (
    "training.learning_rate",
    "training.weight_decay",
    "training.label_smoothing",
    "training.batch_size",
    "model.dropout",
)
"""The settings that can change during a training, as paths in an experiment."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A setting, one of TURNABLE, has another value from ``step`` on, counted from 1.

    A turn is part of the training: the same turns give the same curve, bit for bit on one CPU, also
    when the run is resumed or forked.
    """

    step: int
    setting: str
    value: float


def checked(experiment: Experiment, turn: Turn) -> Turn:
    """Return the turn with its value as the setting stores it. Raises StudentError."""
    if turn.setting not in TURNABLE:
        raise StudentError("{setting} cannot change during training.", setting=turn.setting)
    part, _dot, name = turn.setting.partition(".")
    return Turn(turn.step, turn.setting, getattr(getattr(turned(experiment, [turn]), part), name))


def possible(experiment: Experiment, turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return the turns that the experiment allows, by step; a damaged file may have others."""
    allowed = []
    for turn in turns:
        with suppress(ConfigError):
            allowed.append(checked(experiment, turn))
    return tuple(sorted(allowed, key=attrgetter("step")))


def turned(experiment: Experiment, turns: Iterable[Turn]) -> Experiment:
    """Return the experiment with the values of its turns. Raises ConfigError."""
    for turn in turns:
        part, _dot, name = turn.setting.partition(".")
        values = getattr(experiment, part).model_dump() | {name: turn.value}
        experiment = experiment.replace(**{part: values})
    return experiment


def turn_of(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn in an event's record, or None."""
    step, setting, value = (record.get(name) for name in ("step", "setting", "value"))
    if setting not in TURNABLE or not isinstance(step, int) or not isinstance(value, int | float):
        return None
    return Turn(step, str(setting), value)
