"""Frozen, validated configs, and their JSON and link forms."""

from tfm_core.choices.config.base import Choice, Config, ConfigError, Problem
from tfm_core.choices.config.blocks import BlockConfig, PatchConfig, RotaryConfig, WriterConfig
from tfm_core.choices.config.codec import from_json, from_query, to_json, to_query
from tfm_core.choices.config.corpus_tasks import CORPUS_TASKS, CorpusTaskConfig
from tfm_core.choices.config.experiment import Experiment, sequence_len
from tfm_core.choices.config.image_tasks import (
    IMAGE_TASKS,
    CaptionTaskConfig,
    ImageTaskConfig,
    OwnPicturesTaskConfig,
)
from tfm_core.choices.config.model import (
    DEPTHS,
    MODEL_CONFIGS,
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ForeignModelConfig,
    ModelConfig,
    RecurrentConfig,
    TextModelConfig,
    TransformerConfig,
    ViTConfig,
    built,
)
from tfm_core.choices.config.pretrained_tasks import (
    ForeignTaskConfig,
    OpenedConfig,
    OpenedWordsConfig,
    PretrainedAnswererConfig,
    PretrainedPicturesConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    TunedConfig,
    TunedLabelsConfig,
    TunedTextConfig,
)
from tfm_core.choices.config.reads import PictureTaskConfig
from tfm_core.choices.config.task import (
    TASK_CONFIGS,
    TASK_FACTS,
    TaskConfig,
    facts_of,
    task_config,
    tasks_for,
)
from tfm_core.choices.config.text_tasks import (
    OWN_TEXT_TASKS,
    TEXT_TASKS,
    OwnTextTaskConfig,
    TextTaskConfig,
)
from tfm_core.choices.config.training import TrainingConfig
from tfm_core.choices.variants.forms import FAMILIES, family_label

__all__ = [
    "CORPUS_TASKS",
    "DEPTHS",
    "FAMILIES",
    "IMAGE_TASKS",
    "MODEL_CONFIGS",
    "OWN_TEXT_TASKS",
    "TASK_CONFIGS",
    "TASK_FACTS",
    "TEXT_TASKS",
    "BlockConfig",
    "CaptionTaskConfig",
    "CaptionerConfig",
    "Choice",
    "Config",
    "ConfigError",
    "CorpusTaskConfig",
    "DecoderOnlyConfig",
    "EncoderDecoderConfig",
    "EncoderOnlyConfig",
    "Experiment",
    "ForeignModelConfig",
    "ForeignTaskConfig",
    "ImageTaskConfig",
    "ModelConfig",
    "OpenedConfig",
    "OpenedWordsConfig",
    "OwnPicturesTaskConfig",
    "OwnTextTaskConfig",
    "PatchConfig",
    "PictureTaskConfig",
    "PretrainedAnswererConfig",
    "PretrainedPicturesConfig",
    "PretrainedReaderConfig",
    "PretrainedTextConfig",
    "Problem",
    "RecurrentConfig",
    "RotaryConfig",
    "TaskConfig",
    "TextModelConfig",
    "TextTaskConfig",
    "TrainingConfig",
    "TransformerConfig",
    "TunedConfig",
    "TunedLabelsConfig",
    "TunedTextConfig",
    "ViTConfig",
    "WriterConfig",
    "built",
    "facts_of",
    "family_label",
    "from_json",
    "from_query",
    "sequence_len",
    "task_config",
    "tasks_for",
    "to_json",
    "to_query",
]
