"""An experiment: model, task, training and seed. The whole of what a run will do."""

from __future__ import annotations

from typing import Self, TypeVar

from pydantic import Field, model_validator

from tfm_core.config.base import Config, CrossError, knob
from tfm_core.config.blocks import WriterConfig
from tfm_core.config.captioner import CaptionerConfig
from tfm_core.config.model import (
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    TextModelConfig,
    ViTConfig,
)
from tfm_core.config.reads import PictureTaskConfig, SequenceTaskConfig
from tfm_core.config.recurrent import RecurrentConfig
from tfm_core.config.shape import patches_per_side
from tfm_core.config.task import TASK_FACTS, TaskConfig, TextTaskConfig, tasks_for
from tfm_core.config.training import TrainingConfig
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.families import FAMILIES
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.stems import STEMS, can_halve

C = TypeVar("C", bound=Config)


class Experiment(Config):
    """Model, task, training, seed: the same experiment gives the same curve."""

    model: ModelConfig = Field(default_factory=EncoderDecoderConfig)
    task: TaskConfig = Field(default_factory=TextTaskConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    seed: int = knob(
        0,
        N_("Seed"),
        N_("The same seed gives the same weights, batches and curve."),
        ge=0,
        le=2**31 - 1,
    )

    def task_as(self, kind: type[C]) -> C:
        """Return the task, which must be of a kind. Raises ValueError, in a sentence, otherwise."""
        if isinstance(self.task, kind):
            return self.task
        raise StudentError(
            "{label} is a task of the kind {kind}; here {needed} is needed.",
            label=self.task.facts.label,
            kind=self.task.kind,
            needed=kind.__name__,
        )

    def model_as(self, family: type[C]) -> C:
        """Return the model's settings, which must be of a family. Raises ValueError otherwise."""
        if isinstance(self.model, family):
            return self.model
        raise StudentError(
            "The model is of the family {label}; here {needed} is needed.",
            label=FAMILIES[self.model.family].label,
            needed=family.__name__,
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_family(self)
        _check_patches(self)
        _check_max_len(self)
        _check_checkpointing(self)
        _check_labels(self)
        return self


def sequence_len(experiment: Experiment) -> int:
    """Return the longest sequence that one stack of the model sees, special tokens included."""
    model, facts = experiment.model, experiment.task.facts
    if isinstance(model, ViTConfig | CaptionerConfig):
        side = patches_per_side(experiment.task_as(PictureTaskConfig).image_size, model.patch_size)
        return side**2 + (isinstance(model, ViTConfig) and POOLINGS[model.pooling].has_cls)
    task = experiment.task_as(SequenceTaskConfig)
    src, tgt = task.max_src_len, task.n_answers  # + <eos>, or <bos> where it is shifted
    if isinstance(model, EncoderOnlyConfig) and facts.answer == "label":
        return src + POOLINGS[model.pooling].has_cls
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


def _check_patches(experiment: Experiment) -> None:
    model, task = experiment.model, experiment.task
    if not (isinstance(model, ViTConfig | CaptionerConfig) and isinstance(task, PictureTaskConfig)):
        return
    size = task.image_size
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
    if STEMS[model.stem].halves and not can_halve(size, model.patch_size):
        halved = ", ".join(str(n) for n in range(1, size + 1) if can_halve(size, n))
        raise CrossError(
            "model.patch_size",
            "A stack of convolutions cannot halve the {size}x{size} pictures of {label} to patches "
            "of {patch_size}; to those of {fitting} it can.",
            patch_size=model.patch_size,
            size=size,
            label=task.facts.label,
            fitting=halved,
        )


def _check_max_len(experiment: Experiment) -> None:
    model, task = experiment.model, experiment.task
    if not isinstance(model, TextModelConfig) or not POSITIONS[model.position].has_table:
        return
    needed = sequence_len(experiment)
    if needed > model.max_len:
        raise CrossError(
            "model.max_len",
            "{label} has sequences of up to {needed} tokens, but the learned position table has "
            "{max_len} rows; make it {needed} or choose other positions.",
            label=task.facts.label,
            needed=needed,
            max_len=model.max_len,
        )


def _check_checkpointing(experiment: Experiment) -> None:
    if experiment.training.checkpointing and isinstance(experiment.model, RecurrentConfig):
        raise CrossError(
            "training.checkpointing",
            "{label} has no Transformer blocks whose inside could be forgotten; switch gradient "
            "checkpointing off.",
            label=FAMILIES[experiment.model.family].label,
        )


def _check_labels(experiment: Experiment) -> None:
    """Raise CrossError where labels are to be wrong of a model that writes no token by token."""
    model = experiment.model
    if isinstance(model, WriterConfig | RecurrentConfig):
        return
    for name in experiment.training.mistakes:
        if MISTAKES[name].labels is not None:
            raise CrossError(
                "training.mistakes",
                "“{mistake}” is a mistake of models that write token by token; {family} does not: "
                "choose another family, or leave out this mistake.",
                mistake=MISTAKES[name].label,
                family=FAMILIES[model.family].label,
            )
