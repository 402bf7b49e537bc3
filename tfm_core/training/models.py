"""From an experiment to its model: sizes come from the task, first weights from the seed."""

from __future__ import annotations

import torch

from tfm_core.config import Experiment, ImageTaskConfig, TextTaskConfig, ViTConfig
from tfm_core.data.text import text_task
from tfm_core.data.vocabulary import PAD
from tfm_core.models.build import ImageShape, Model, TextShape, build_text, build_vit
from tfm_core.training.seeds import mix


def data_shape(experiment: Experiment) -> TextShape | ImageShape:
    """Return what the model must know of its data, without making any."""
    if isinstance(experiment.task, ImageTaskConfig):
        facts = experiment.task.facts
        return ImageShape(facts.image_size, facts.channels, facts.n_classes)
    assert isinstance(experiment.task, TextTaskConfig)
    task = text_task(experiment.task)
    return TextShape(len(task.src_vocabulary), len(task.tgt_vocabulary), PAD)


def new_model(experiment: Experiment) -> Model:
    """Build the model on the default device, its first weights drawn from the seed.

    The caller's own random numbers stay as they were. Under ``torch.device("meta")`` no memory is
    taken.
    """
    shape = data_shape(experiment)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(mix(experiment.seed, 0))
        if isinstance(shape, ImageShape):
            assert isinstance(experiment.model, ViTConfig)
            return build_vit(experiment.model, shape)
        assert not isinstance(experiment.model, ViTConfig)
        return build_text(experiment.model, shape)
