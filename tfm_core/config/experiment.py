"""An experiment: model, task, training and seed. The whole of what a run will do."""

from __future__ import annotations

from typing import Self, TypeVar

from pydantic import Field, model_validator

from tfm_core.config.base import Config, CrossError, setting
from tfm_core.config.model import EncoderDecoderConfig, ModelConfig
from tfm_core.config.reads import SequenceTaskConfig
from tfm_core.config.task import TASK_FACTS, TaskConfig, TextTaskConfig, tasks_for
from tfm_core.config.training import TrainingConfig
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, Paragraph, StudentError, listed
from tfm_core.variants.families import family_label

C = TypeVar("C", bound=Config)


class Experiment(Config):
    """Model, task, training, seed: the same experiment gives the same curve."""

    model: ModelConfig = Field(default_factory=EncoderDecoderConfig)
    task: TaskConfig = Field(default_factory=TextTaskConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    seed: int = setting(
        0,
        N_("Seed"),
        N_("The same seed gives the same curve."),
        ge=0,
        le=2**31 - 1,
    )

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
        if self.training.checkpointing and not self.model.has_blocks:
            raise CrossError(
                "training.checkpointing",
                "{label} has no Transformer blocks; switch checkpointing off.",
                label=family_label(self.model.family),
            )
        _check_labels(self)
        self.task.check_model(self.model)
        return self


def sequence_len(experiment: Experiment) -> int:
    """Return the longest sequence that one stack of the model sees, special tokens included."""
    if side := experiment.patches_per_side:
        return side**2 + experiment.has_cls
    task = experiment.task_as(SequenceTaskConfig)
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


def _check_labels(experiment: Experiment) -> None:
    """Raise CrossError where labels are to be wrong of a model that writes no token by token."""
    model = experiment.model
    if model.order is not None or model.writes_from_past:
        return
    for name in experiment.training.mistakes:
        if MISTAKES[name].labels is not None:
            raise CrossError(
                "training.mistakes",
                Paragraph(
                    "settings/labels-mistake",
                    mistake=MISTAKES[name].label,
                    family=family_label(model.family),
                ),
            )
