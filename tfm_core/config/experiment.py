"""An experiment: model, task, training and seed. The whole of what a run will do."""

from __future__ import annotations

from typing import Self, TypeVar

from pydantic import Field, model_validator

from tfm_core.config.base import Config, CrossError, knob
from tfm_core.config.caption_task import CaptionTaskConfig
from tfm_core.config.captioner import CaptionerConfig
from tfm_core.config.model import (
    FAMILIES,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    ViTConfig,
)
from tfm_core.config.recurrent import RecurrentConfig
from tfm_core.config.shape import patches_per_side
from tfm_core.config.task import (
    TASK_FACTS,
    ImageTaskConfig,
    SequenceTaskConfig,
    TaskConfig,
    TextTaskConfig,
    tasks_for,
)
from tfm_core.config.training import TrainingConfig
from tfm_core.sentences import StudentError

C = TypeVar("C", bound=Config)


class Experiment(Config):
    """Model, task, training, seed: the same experiment gives the same curve."""

    model: ModelConfig = Field(default_factory=EncoderDecoderConfig)
    task: TaskConfig = Field(default_factory=TextTaskConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    seed: int = knob(
        0, "Seed", "The same seed gives the same weights, batches and curve.", ge=0, le=2**31 - 1
    )

    def task_as(self, kind: type[C]) -> C:
        """Return the task, which must be of a kind. Raises ValueError, in a sentence, otherwise."""
        if isinstance(self.task, kind):
            return self.task
        wanted = kind.model_fields["kind"].default
        raise StudentError(
            "The task {label} is of kind {kind}, not {wanted}.",
            label=self.task.facts.label,
            kind=self.task.kind,
            wanted=wanted,
        )

    def model_as(self, family: type[C]) -> C:
        """Return the model's settings, which must be of a family. Raises ValueError otherwise."""
        if isinstance(self.model, family):
            return self.model
        wanted = family.model_fields["family"].default
        raise StudentError(
            "The model is of the family {family}, not {wanted}.",
            family=self.model.family,
            wanted=wanted,
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_family(self)
        if isinstance(self.model, ViTConfig):
            _check_vit(self)
        elif isinstance(self.model, CaptionerConfig):
            _check_patches(self)
        else:
            _check_text(self)
        return self


def sequence_len(experiment: Experiment) -> int:
    """Return the longest sequence that one stack of the model sees, special tokens included."""
    model, task = experiment.model, experiment.task
    if isinstance(model, ViTConfig):
        assert isinstance(task, ImageTaskConfig)
        return patches_per_side(task.facts.image_size, model.patch_size) ** 2 + (
            model.pooling == "cls"
        )
    if isinstance(model, CaptionerConfig):
        assert isinstance(task, CaptionTaskConfig)
        return patches_per_side(task.facts.image_size, model.patch_size) ** 2
    assert isinstance(task, SequenceTaskConfig)
    src, tgt = task.max_src_len, task.n_answers  # + <eos>, or <bos> where it is shifted
    if isinstance(model, EncoderOnlyConfig) and task.facts.answer == "label":
        return src + (model.pooling == "cls")
    if model.family == "decoder-only":
        return src + tgt
    return max(src, tgt)


def _check_family(experiment: Experiment) -> None:
    family, facts = experiment.model.family, experiment.task.facts
    if family not in facts.families:
        able = " or ".join(FAMILIES[name].label for name in facts.families)
        others = ", ".join(TASK_FACTS[name].label for name in tasks_for(family)[:3])
        raise CrossError(
            "task.name",
            "{label} cannot learn the task {task}; choose a task such as {others}, or "
            "the family {able}.",
            label=FAMILIES[family].label,
            task=facts.label,
            others=others,
            able=able,
        )


def _check_vit(experiment: Experiment) -> None:
    _check_patches(experiment)
    task = experiment.task
    assert isinstance(task, ImageTaskConfig)
    if task.n_validation >= task.facts.n_train:
        raise CrossError(
            "task.n_validation",
            "n_validation {n_validation} leaves nothing of the {n_train} training pictures; "
            "choose fewer.",
            n_validation=task.n_validation,
            n_train=task.facts.n_train,
        )


def _check_patches(experiment: Experiment) -> None:
    model, task = experiment.model, experiment.task
    assert isinstance(model, ViTConfig | CaptionerConfig)
    assert isinstance(task, ImageTaskConfig | CaptionTaskConfig)
    size = task.facts.image_size
    if size % model.patch_size:
        fitting = ", ".join(str(n) for n in range(1, size + 1) if size % n == 0)
        raise CrossError(
            "model.patch_size",
            "patch_size {patch_size} does not divide the {size}x{size} pictures of {label}; "
            "{fitting} would.",
            patch_size=model.patch_size,
            size=size,
            label=task.facts.label,
            fitting=fitting,
        )


def _check_text(experiment: Experiment) -> None:
    model, task = experiment.model, experiment.task
    assert isinstance(task, SequenceTaskConfig)
    assert not isinstance(model, ViTConfig | CaptionerConfig)
    if isinstance(model, RecurrentConfig):
        return  # reads any length
    needed = sequence_len(experiment)
    if model.position == "learned" and needed > model.max_len:
        raise CrossError(
            "model.max_len",
            "{label} has sequences of up to {needed} tokens, but the learned position table has "
            "{max_len} rows; make it {needed} or choose other positions.",
            label=task.facts.label,
            needed=needed,
            max_len=model.max_len,
        )
