"""The kinds of task: what belongs to each, from its data to the walk through its model.

A kind is one record. A new kind is its settings (one more class in ``config.task.TaskConfig``), its
own modules, and its record here; what pages show of it is in ``pages.ui.model.task_panels``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfm_core.sentences import N_
from tfm_core.variants.record import LazyModule, Registry, Variant

if TYPE_CHECKING:
    from torch import Tensor

    import tfm_core.config.caption_task
    import tfm_core.config.corpus_tasks
    import tfm_core.config.foreign
    import tfm_core.config.image_tasks
    import tfm_core.config.own_pictures
    import tfm_core.config.own_tasks
    import tfm_core.config.pretrained_tasks
    import tfm_core.config.task
    import tfm_core.config.tuned_tasks
    import tfm_core.data.captions
    import tfm_core.data.corpus.load
    import tfm_core.data.corpus.task
    import tfm_core.data.image_data
    import tfm_core.data.own.pictures_task
    import tfm_core.data.own.task
    import tfm_core.data.shape
    import tfm_core.data.text
    import tfm_core.data.text_data
    import tfm_core.inspect.attention.inputs
    import tfm_core.inspect.attention.own_example
    import tfm_core.inspect.errors.validation_errors
    import tfm_core.inspect.source.carried
    import tfm_core.inspect.training_step.batch
    import tfm_core.inspect.walk.captions
    import tfm_core.inspect.walk.pictures
    import tfm_core.inspect.walk.texts
    import tfm_core.pretrained.foreign
    import tfm_core.pretrained.task
    import tfm_core.pretrained.tuned
    import tfm_core.probe.snapshot
    import tfm_core.training.caption_objective
    import tfm_core.training.language
    import tfm_core.training.masked
    import tfm_core.training.objectives
    from tfm_core.config import Experiment
    from tfm_core.config.reads import NamedTaskConfig
    from tfm_core.config.shape import Shape
    from tfm_core.data.load import Data
    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.attention.example import Example
    from tfm_core.inspect.attention.inputs import Batch
    from tfm_core.inspect.errors.validation_errors import ValidationAnswer
    from tfm_core.inspect.source.carried import Carried
    from tfm_core.inspect.training_step.batch import BatchRows
    from tfm_core.inspect.walk.forward import Subject
    from tfm_core.probe.types import Snapshot
    from tfm_core.runs.run import Run
    from tfm_core.training.loop import Trainer
    from tfm_core.training.objectives import Objective
else:  # its modules are imported where something of them is used first
    tfm_core = LazyModule("tfm_core")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind(Variant):
    """A kind of task: what a model reads, and the parts that learning and looking need.

    Each part is a function of no arguments that returns the part itself, so that its module is
    imported only where it is used: ``TASK_KINDS[task.kind].load()(task, seed=0)``.

    config: the settings. text(config): the words of a text, and how they are cut; None where no
    text is learned from. load(task, *, seed, progress): the data. shape(experiment): what a model
    must know of the data. objective(data, task, *, label_smoothing, mistakes): what is learned.
    probe(trainer): fixed examples, and snapshot(trainer, n_attended): the attention on them; see
    ``probe.types``. inputs(run, item, picture): what the model is called with for one
    example. batches(experiment, data, rows): the same for many, and their items, see
    ``attention.inputs``. errors(experiment, model, data, rows): wrong answers to unseen examples,
    see ``errors.validation_errors``; None where no answer is simply wrong. own_text(run, text,
    modules): read a text that the user typed and keep the maps of these attentions, None for
    pictures. batch_rows(trainer, indices): a batch in words, and class_name(trainer, number): the
    class of an output in words, see ``training_step.batch``. walk(experiment, model, items,
    images): what a walk shows, see ``walk.subject``. carried(experiment): what of the data a
    generated file needs.
    """

    config: Callable[[], type[NamedTaskConfig]]
    load: Callable[[], Callable[..., Data]]
    shape: Callable[[], Callable[[Experiment], Shape]]
    objective: Callable[[], Callable[..., Objective]]
    probe: Callable[[], Callable[[Trainer], dict[str, Any]]]
    snapshot: Callable[[], Callable[[Trainer, int | None], Snapshot]]
    inputs: Callable[[], Callable[..., tuple[Tensor, ...]]]
    batches: Callable[[], Callable[..., Batch]]
    errors: Callable[[], Callable[..., list[ValidationAnswer]]] | None
    own_text: Callable[[], Callable[[Run, str, Collection[str]], Example]] | None
    batch_rows: Callable[[], Callable[[Trainer, Tensor], BatchRows]]
    class_name: Callable[[], Callable[[Trainer, int], str]]
    walk: Callable[[], Callable[..., Subject]]
    carried: Callable[[], Callable[[Experiment], Carried]]
    text: Callable[[], Callable[..., TextTask]] | None = None


TEXT = TaskKind(
    name="text",
    label=N_("Text"),
    help=N_("Answer a text with words, a label, or its blanks."),
    source="Sutskever et al. 2014",
    config=lambda: tfm_core.config.task.TextTaskConfig,
    text=lambda: tfm_core.data.text.generated,
    load=lambda: tfm_core.data.text_data.load_text,
    shape=lambda: tfm_core.data.shape.text_shape,
    objective=lambda: tfm_core.training.masked.text_objective,
    probe=lambda: tfm_core.probe.snapshot.text_probe,
    snapshot=lambda: tfm_core.probe.snapshot.text_snapshot,
    inputs=lambda: tfm_core.inspect.attention.inputs.of_text,
    batches=lambda: tfm_core.inspect.attention.inputs.text_batch,
    errors=lambda: tfm_core.inspect.errors.validation_errors.of_texts,
    own_text=lambda: tfm_core.inspect.attention.own_example.answered,
    batch_rows=lambda: tfm_core.inspect.training_step.batch.text_rows,
    class_name=lambda: tfm_core.inspect.training_step.batch.token_name,
    walk=lambda: tfm_core.inspect.walk.texts.of_texts,
    carried=lambda: tfm_core.inspect.source.carried.of_texts,
)
IMAGE = TaskKind(
    name="image",
    label=N_("Pictures"),
    help=N_("Classify a picture."),
    source="LeCun et al. 1998",
    config=lambda: tfm_core.config.image_tasks.ImageTaskConfig,
    load=lambda: tfm_core.data.image_data.load_images,
    shape=lambda: tfm_core.data.shape.image_shape,
    objective=lambda: tfm_core.training.objectives.ImageObjective,
    probe=lambda: tfm_core.probe.snapshot.image_probe,
    snapshot=lambda: tfm_core.probe.snapshot.image_snapshot,
    inputs=lambda: tfm_core.inspect.attention.inputs.of_picture,
    batches=lambda: tfm_core.inspect.attention.inputs.picture_batch,
    errors=lambda: tfm_core.inspect.errors.validation_errors.of_pictures,
    own_text=None,
    batch_rows=lambda: tfm_core.inspect.training_step.batch.image_rows,
    class_name=lambda: tfm_core.inspect.training_step.batch.image_class,
    walk=lambda: tfm_core.inspect.walk.pictures.of_pictures,
    carried=lambda: tfm_core.inspect.source.carried.of_pictures,
)
CAPTION = TaskKind(
    name="caption",
    label=N_("Captions"),
    help=N_("Describe a picture in words."),
    source="Vinyals et al. 2015",
    config=lambda: tfm_core.config.caption_task.CaptionTaskConfig,
    load=lambda: tfm_core.data.captions.load_captions,
    shape=lambda: tfm_core.data.shape.caption_shape,
    objective=lambda: tfm_core.training.caption_objective.CaptionObjective,
    probe=lambda: tfm_core.probe.snapshot.caption_probe,
    snapshot=lambda: tfm_core.probe.snapshot.caption_snapshot,
    inputs=lambda: tfm_core.inspect.attention.inputs.of_caption,
    batches=lambda: tfm_core.inspect.attention.inputs.caption_batch,
    errors=lambda: tfm_core.inspect.errors.validation_errors.of_captions,
    own_text=None,
    batch_rows=lambda: tfm_core.inspect.training_step.batch.caption_rows,
    class_name=lambda: tfm_core.inspect.training_step.batch.caption_word,
    walk=lambda: tfm_core.inspect.walk.captions.of_captions,
    carried=lambda: tfm_core.inspect.source.carried.of_captions,
)
CORPUS = TaskKind(
    name="corpus",
    label=N_("Language model"),
    help=N_("Continue a text."),
    source="Radford et al. 2018",
    config=lambda: tfm_core.config.corpus_tasks.CorpusTaskConfig,
    text=lambda: tfm_core.data.corpus.task.learned_task,
    load=lambda: tfm_core.data.corpus.load.load_corpus,
    shape=lambda: tfm_core.data.shape.corpus_shape,
    objective=lambda: tfm_core.training.language.LanguageObjective,
    probe=lambda: tfm_core.probe.snapshot.corpus_probe,
    snapshot=lambda: tfm_core.probe.snapshot.corpus_snapshot,
    inputs=lambda: tfm_core.inspect.attention.inputs.of_text,
    batches=lambda: tfm_core.inspect.attention.inputs.text_batch,
    errors=None,
    own_text=lambda: tfm_core.inspect.attention.own_example.continued_text,
    batch_rows=lambda: tfm_core.inspect.training_step.batch.text_rows,
    class_name=lambda: tfm_core.inspect.training_step.batch.token_name,
    walk=lambda: tfm_core.inspect.walk.texts.of_texts,
    carried=lambda: tfm_core.inspect.source.carried.of_corpus,
)
OWN_PICTURES = replace(
    IMAGE,
    name="own-pictures",
    label=N_("Your pictures"),
    help=N_("Classify a picture into one of your classes."),
    config=lambda: tfm_core.config.own_pictures.OwnPicturesTaskConfig,
    load=lambda: tfm_core.data.own.pictures_task.load_own_pictures,
)
OWN_TEXT = replace(
    TEXT,
    name="own",
    label=N_("Your sentences"),
    help=N_("Answer a sentence with another, or a label."),
    config=lambda: tfm_core.config.own_tasks.OwnTextTaskConfig,
    text=lambda: tfm_core.data.own.task.own_task,
    load=lambda: tfm_core.data.own.task.load_own,
    shape=lambda: tfm_core.data.shape.own_shape,
    objective=lambda: tfm_core.training.objectives.OwnObjective,
    carried=lambda: tfm_core.inspect.source.carried.of_own_texts,
)
PRETRAINED_TEXT = replace(
    CORPUS,
    name="pretrained",
    label=N_("Pretrained language model"),
    help=N_("Continue a text; trained elsewhere."),
    config=lambda: tfm_core.config.pretrained_tasks.PretrainedTextConfig,
    text=lambda: tfm_core.pretrained.task.writer,
    load=lambda: tfm_core.pretrained.task.load_text,
    shape=lambda: tfm_core.pretrained.task.writer_shape,
    carried=lambda: tfm_core.pretrained.task.carried,
)
PRETRAINED_READER = replace(
    TEXT,
    name="pretrained-reader",
    label=N_("Pretrained encoder"),
    help=N_("Make vectors of a text; trained elsewhere."),
    config=lambda: tfm_core.config.pretrained_tasks.PretrainedReaderConfig,
    text=lambda: tfm_core.pretrained.task.reader,
    load=lambda: tfm_core.pretrained.task.load_nothing,
    shape=lambda: tfm_core.pretrained.task.reader_shape,
    errors=None,
    own_text=lambda: tfm_core.inspect.attention.own_example.read_text,
    carried=lambda: tfm_core.pretrained.task.carried,
)
FOREIGN = replace(
    TEXT,
    name="foreign",
    label=N_("PyTorch model"),
    help=N_("Trained in a program of your own."),
    config=lambda: tfm_core.config.foreign.ForeignTaskConfig,
    text=None,
    load=lambda: tfm_core.pretrained.foreign.load,
    shape=lambda: tfm_core.pretrained.foreign.shape,
    errors=None,
    own_text=None,
    carried=lambda: tfm_core.pretrained.foreign.shape,
)
PRETRAINED_PICTURES = replace(
    IMAGE,
    name="pretrained-pictures",
    label=N_("Pretrained classifier of pictures"),
    help=N_("Classify a picture; trained elsewhere."),
    config=lambda: tfm_core.config.pretrained_tasks.PretrainedPicturesConfig,
    load=lambda: tfm_core.pretrained.task.load_no_pictures,
    shape=lambda: tfm_core.pretrained.task.pictures_shape,
    errors=None,
    carried=lambda: tfm_core.pretrained.task.carried,
)
PRETRAINED_ANSWERER = replace(
    TEXT,
    name="pretrained-answerer",
    label=N_("Pretrained encoder-decoder"),
    help=N_("Answer a text with another; trained elsewhere."),
    config=lambda: tfm_core.config.pretrained_tasks.PretrainedAnswererConfig,
    text=lambda: tfm_core.pretrained.task.reader,
    load=lambda: tfm_core.pretrained.task.load_no_answers,
    shape=lambda: tfm_core.pretrained.task.answerer_shape,
    errors=None,
    carried=lambda: tfm_core.pretrained.task.carried,
)
TUNED_TEXT = replace(
    PRETRAINED_TEXT,
    name="tuned-text",
    label=N_("Fine-tuned language model"),
    help=N_("Continue your text; trained further."),
    config=lambda: tfm_core.config.tuned_tasks.TunedTextConfig,
    text=lambda: tfm_core.pretrained.tuned.tuned_writer,
    load=lambda: tfm_core.pretrained.tuned.load_tuned_text,
)
TUNED_LABELS = replace(
    OWN_TEXT,
    name="tuned-labels",
    label=N_("Fine-tuned classifier"),
    help=N_("Give a sentence one of your labels; trained further."),
    config=lambda: tfm_core.config.tuned_tasks.TunedLabelsConfig,
    text=lambda: tfm_core.pretrained.tuned.tuned_labels,
    load=lambda: tfm_core.pretrained.tuned.load_tuned_labels,
    shape=lambda: tfm_core.pretrained.tuned.tuned_labels_shape,
    carried=lambda: tfm_core.pretrained.task.carried,
)
LOOK = replace(
    TEXT,
    name="look",
    label=N_("A look"),
    help=N_("One forward pass of any PyTorch model, recorded by tfm_core.look."),
    config=lambda: tfm_core.config.pretrained_tasks.LookConfig,
    text=lambda: tfm_core.pretrained.task.maps_alone,
    load=lambda: tfm_core.pretrained.task.maps_alone,
    shape=lambda: tfm_core.pretrained.task.maps_alone,
    inputs=lambda: tfm_core.pretrained.task.maps_alone,
    batches=lambda: tfm_core.pretrained.task.maps_alone,
    errors=None,
    own_text=lambda: tfm_core.pretrained.task.maps_alone,
    carried=lambda: tfm_core.pretrained.task.maps_alone,
)
TASK_KINDS = Registry(
    "kind of task", TEXT, IMAGE, CAPTION, CORPUS, OWN_PICTURES, OWN_TEXT, PRETRAINED_TEXT,
    PRETRAINED_READER, PRETRAINED_PICTURES, PRETRAINED_ANSWERER, TUNED_TEXT, TUNED_LABELS, LOOK,
    FOREIGN,
)  # fmt: skip
