"""The kinds of task: what belongs to each, from its data to the walk through its model.

A kind is one record. A new kind is its settings (one more class in ``config.task.TaskConfig``), its
own modules, and its record here; what pages show of it is in ``pages.ui.model.task_panels``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfm_core.sentences import N_
from tfm_core.variants.record import LazyModule, Registry, Variant

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.config import (
        Experiment,
        caption_task,
        corpus_tasks,
        image_tasks,
        own_pictures,
        own_tasks,
    )
    from tfm_core.config import task as task_config
    from tfm_core.config.reads import NamedTaskConfig
    from tfm_core.config.shape import Shape
    from tfm_core.data import captions, image_data, text, text_data
    from tfm_core.data import shape as shapes
    from tfm_core.data.corpus import load as corpus
    from tfm_core.data.corpus import task as corpus_texts
    from tfm_core.data.load import Data
    from tfm_core.data.own import pictures_task
    from tfm_core.data.own import task as own_texts
    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.attention import inputs as model_inputs
    from tfm_core.inspect.attention import own_example
    from tfm_core.inspect.attention.example import Example
    from tfm_core.inspect.errors import validation_errors
    from tfm_core.inspect.source import carried as run_data
    from tfm_core.inspect.source.carried import Carried
    from tfm_core.inspect.training_step import batch as step_batch
    from tfm_core.inspect.walk import captions as walk_captions
    from tfm_core.inspect.walk import pictures as walk_pictures
    from tfm_core.inspect.walk import texts as walk_texts
    from tfm_core.inspect.walk.forward import Subject
    from tfm_core.probe import snapshot as snapshots
    from tfm_core.probe.types import Snapshot
    from tfm_core.runs.run import Run
    from tfm_core.training import caption_objective, language, masked, objectives
    from tfm_core.training.loop import Trainer
else:  # imported where something of it is used first
    caption_task = LazyModule("tfm_core.config.caption_task")
    corpus_tasks = LazyModule("tfm_core.config.corpus_tasks")
    image_tasks = LazyModule("tfm_core.config.image_tasks")
    own_pictures = LazyModule("tfm_core.config.own_pictures")
    own_tasks = LazyModule("tfm_core.config.own_tasks")
    task_config = LazyModule("tfm_core.config.task")
    captions = LazyModule("tfm_core.data.captions")
    corpus = LazyModule("tfm_core.data.corpus.load")
    corpus_texts = LazyModule("tfm_core.data.corpus.task")
    image_data = LazyModule("tfm_core.data.image_data")
    own_texts = LazyModule("tfm_core.data.own.task")
    pictures_task = LazyModule("tfm_core.data.own.pictures_task")
    shapes = LazyModule("tfm_core.data.shape")
    text = LazyModule("tfm_core.data.text")
    text_data = LazyModule("tfm_core.data.text_data")
    model_inputs = LazyModule("tfm_core.inspect.attention.inputs")
    validation_errors = LazyModule("tfm_core.inspect.errors.validation_errors")
    own_example = LazyModule("tfm_core.inspect.attention.own_example")
    run_data = LazyModule("tfm_core.inspect.source.carried")
    step_batch = LazyModule("tfm_core.inspect.training_step.batch")
    walk_captions = LazyModule("tfm_core.inspect.walk.captions")
    walk_pictures = LazyModule("tfm_core.inspect.walk.pictures")
    walk_texts = LazyModule("tfm_core.inspect.walk.texts")
    snapshots = LazyModule("tfm_core.probe.snapshot")
    caption_objective = LazyModule("tfm_core.training.caption_objective")
    language = LazyModule("tfm_core.training.language")
    masked = LazyModule("tfm_core.training.masked")
    objectives = LazyModule("tfm_core.training.objectives")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind(Variant):
    """A kind of task: what a model reads, and the parts that learning and looking need.

    Each part is a function of no arguments that returns the part itself, so that its module is
    imported only where it is used: ``TASK_KINDS[task.kind].load()(task, seed=0)``.

    config: the settings. text(config): the words of a text, and how they are cut; None where no
    text is learned from. load(task, *, seed, progress): the data. shape(experiment): what a model
    must know of the data. objective(data, task, *, label_smoothing, mistakes): what is learned.
    probe(trainer): fixed examples, and snapshot(trainer, n_attended): the attention on them; see
    ``probe.types``. inputs(experiment, item, picture): what the model is called with for one
    example. batches(experiment, data, rows): the same for many, and their items, see
    ``attention.inputs``. errors(experiment, model, data, rows): wrong answers to unseen examples,
    see ``errors.validation_errors``; None where no answer is simply wrong. own_text(run, text):
    read a text that the user typed, None for pictures. batch_rows(trainer, indices): a batch in
    words, and class_name(trainer, number): the class of an output in words, see
    ``training_step.batch``. walk(experiment, model, items, images): what a walk shows, see
    ``walk.subject``. carried(experiment): what of the data a generated file needs.
    """

    config: Callable[[], type[NamedTaskConfig]]
    load: Callable[[], Callable[..., Data]]
    shape: Callable[[], Callable[[Experiment], Shape]]
    objective: Callable[[], Callable[..., objectives.Objective]]
    probe: Callable[[], Callable[[Trainer], dict[str, Any]]]
    snapshot: Callable[[], Callable[[Trainer, int | None], Snapshot]]
    inputs: Callable[[], Callable[..., tuple[Tensor, ...]]]
    batches: Callable[[], Callable[..., model_inputs.Batch]]
    errors: Callable[[], Callable[..., list[validation_errors.ValidationAnswer]]] | None
    own_text: Callable[[], Callable[[Run, str], Example]] | None
    batch_rows: Callable[[], Callable[[Trainer, Tensor], step_batch.BatchRows]]
    class_name: Callable[[], Callable[[Trainer, int], str]]
    walk: Callable[[], Callable[..., Subject]]
    carried: Callable[[], Callable[[Experiment], Carried]]
    text: Callable[[], Callable[..., TextTask]] | None = None


TEXT = TaskKind(
    name="text",
    label=N_("Text"),
    help=N_("Answer a text with words, a label, or its blanks."),
    source="Sutskever et al. 2014",
    config=lambda: task_config.TextTaskConfig,
    text=lambda: text.generated,
    load=lambda: text_data.load_text,
    shape=lambda: shapes.text_shape,
    objective=lambda: masked.text_objective,
    probe=lambda: snapshots.text_probe,
    snapshot=lambda: snapshots.text_snapshot,
    inputs=lambda: model_inputs.of_text,
    batches=lambda: model_inputs.text_batch,
    errors=lambda: validation_errors.of_texts,
    own_text=lambda: own_example.answered,
    batch_rows=lambda: step_batch.text_rows,
    class_name=lambda: step_batch.token_name,
    walk=lambda: walk_texts.of_texts,
    carried=lambda: run_data.of_texts,
)
IMAGE = TaskKind(
    name="image",
    label=N_("Pictures"),
    help=N_("Classify a picture."),
    source="LeCun et al. 1998",
    config=lambda: image_tasks.ImageTaskConfig,
    load=lambda: image_data.load_images,
    shape=lambda: shapes.image_shape,
    objective=lambda: objectives.ImageObjective,
    probe=lambda: snapshots.image_probe,
    snapshot=lambda: snapshots.image_snapshot,
    inputs=lambda: model_inputs.of_picture,
    batches=lambda: model_inputs.picture_batch,
    errors=lambda: validation_errors.of_pictures,
    own_text=None,
    batch_rows=lambda: step_batch.image_rows,
    class_name=lambda: step_batch.image_class,
    walk=lambda: walk_pictures.of_pictures,
    carried=lambda: run_data.of_pictures,
)
CAPTION = TaskKind(
    name="caption",
    label=N_("Captions"),
    help=N_("Describe a picture in words."),
    source="Vinyals et al. 2015",
    config=lambda: caption_task.CaptionTaskConfig,
    load=lambda: captions.load_captions,
    shape=lambda: shapes.caption_shape,
    objective=lambda: caption_objective.CaptionObjective,
    probe=lambda: snapshots.caption_probe,
    snapshot=lambda: snapshots.caption_snapshot,
    inputs=lambda: model_inputs.of_caption,
    batches=lambda: model_inputs.caption_batch,
    errors=lambda: validation_errors.of_captions,
    own_text=None,
    batch_rows=lambda: step_batch.caption_rows,
    class_name=lambda: step_batch.caption_word,
    walk=lambda: walk_captions.of_captions,
    carried=lambda: run_data.of_captions,
)
CORPUS = TaskKind(
    name="corpus",
    label=N_("Language model"),
    help=N_("Continue a text."),
    source="Radford et al. 2018",
    config=lambda: corpus_tasks.CorpusTaskConfig,
    text=lambda: corpus_texts.corpus_task,
    load=lambda: corpus.load_corpus,
    shape=lambda: shapes.corpus_shape,
    objective=lambda: language.LanguageObjective,
    probe=lambda: snapshots.corpus_probe,
    snapshot=lambda: snapshots.corpus_snapshot,
    inputs=lambda: model_inputs.of_text,
    batches=lambda: model_inputs.text_batch,
    errors=None,
    own_text=lambda: own_example.continued_text,
    batch_rows=lambda: step_batch.text_rows,
    class_name=lambda: step_batch.token_name,
    walk=lambda: walk_texts.of_texts,
    carried=lambda: run_data.of_corpus,
)
OWN_PICTURES = replace(
    IMAGE,
    name="own-pictures",
    label=N_("Your pictures"),
    help=N_("Classify a picture into one of your classes."),
    config=lambda: own_pictures.OwnPicturesTaskConfig,
    load=lambda: pictures_task.load_own_pictures,
)
OWN_TEXT = replace(
    TEXT,
    name="own",
    label=N_("Your sentences"),
    help=N_("Answer a sentence with another, or a label."),
    config=lambda: own_tasks.OwnTextTaskConfig,
    text=lambda: own_texts.own_task,
    load=lambda: own_texts.load_own,
    shape=lambda: shapes.own_shape,
    objective=lambda: objectives.OwnObjective,
    carried=lambda: run_data.of_own_texts,
)
TASK_KINDS = Registry("kind of task", TEXT, IMAGE, CAPTION, CORPUS, OWN_PICTURES, OWN_TEXT)
