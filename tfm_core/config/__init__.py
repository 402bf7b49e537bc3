"""Frozen, validated configs, and their JSON and link forms."""

from tfm_core.config.base import Choice, Config, ConfigError, Problem
from tfm_core.config.blocks import BlockConfig, RotaryConfig, WriterConfig
from tfm_core.config.caption_task import CaptionTaskConfig
from tfm_core.config.codec import from_json, from_query, to_json, to_query
from tfm_core.config.corpus_tasks import CORPUS_TASKS, CorpusTaskConfig
from tfm_core.config.experiment import Experiment, sequence_len
from tfm_core.config.family import PatchConfig
from tfm_core.config.foreign import ForeignTaskConfig
from tfm_core.config.image_tasks import IMAGE_TASKS, ImageTaskConfig
from tfm_core.config.model import (
    DEPTHS,
    MODEL_CONFIGS,
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ForeignModelConfig,
    ModelConfig,
    TextModelConfig,
    TransformerConfig,
    ViTConfig,
    built,
)
from tfm_core.config.own_pictures import OwnPicturesTaskConfig
from tfm_core.config.own_tasks import OWN_TEXT_TASKS, OwnTextTaskConfig
from tfm_core.config.pretrained_tasks import (
    LookConfig,
    OpenedConfig,
    OpenedWordsConfig,
    PretrainedAnswererConfig,
    PretrainedPicturesConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
)
from tfm_core.config.reads import PictureTaskConfig, SequenceTaskConfig
from tfm_core.config.recurrent import RecurrentConfig
from tfm_core.config.task import (
    TASK_CONFIGS,
    TASK_FACTS,
    TaskConfig,
    TextTaskConfig,
    facts_of,
    task_config,
    tasks_for,
)
from tfm_core.config.text_tasks import TEXT_TASKS
from tfm_core.config.training import TrainingConfig
from tfm_core.config.tuned_tasks import TunedConfig, TunedLabelsConfig, TunedTextConfig
from tfm_core.variants.families import FAMILIES, family_label

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
    "LookConfig",
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
    "SequenceTaskConfig",
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
