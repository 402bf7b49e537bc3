"""The kinds of task: what belongs to each, from its data to the walk through its model.

A kind is one record. Its parts lie on different floors of the house, so they are named
(``"module:name"``) and resolved where they are used: ``TASK_KINDS[task.kind].part("load")``. A new
kind is its settings (one more class in ``config.task.TaskConfig``), its own modules, and its record
here; what pages show of it stands in ``pages.ui.task_panels``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from tfm_core.sentences import N_, StudentError
from tfm_core.variants.record import Registry, Variant, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind(Variant):
    """A kind of task: what a model reads, and the named parts that learning and looking need.

    config: the settings, a class of ``config.task.TaskConfig``.
    load(task, *, seed, progress): the data, see ``data.load.Data``.
    shape(experiment): what a model must know of the data, see ``config.shape``.
    objective(data, task, *, label_smoothing, loss_input): see ``training.objectives.Objective``.
    probe(trainer): fixed examples, and snapshot(trainer): a look inside; see ``probe.types``.
    inputs(experiment, item, picture): what the model is called with for one example.
    batches(experiment, data, rows): the same for many, and their items, see ``attention.inputs``.
    mistakes(experiment, model, data, rows): what it makes of unseen examples, None where no answer
    is simply wrong; see ``attention.mistakes``.
    own_text(run, text): read a reader's own text, None where pictures are read.
    batch_rows(trainer, indices): a batch in words, and class_name(trainer, number): an output's
    class in words; see ``training_step.batch``.
    walk(experiment, model, items, images): a walk's subject, see ``walk.subject``.
    """

    reads: Literal["tokens", "pixels"]
    config: str
    load: str
    shape: str
    objective: str
    probe: str
    snapshot: str
    inputs: str
    batches: str
    mistakes: str | None
    own_text: str | None
    batch_rows: str
    class_name: str
    walk: str

    def part(self, name: str) -> Any:
        """Return what a part names. Raises ValueError, in a sentence, where the kind has none."""
        where = getattr(self, name)
        if where is None:
            raise StudentError(
                "There is no {name} for tasks of the kind {kind}.", name=name, kind=self.label
            )
        return resolve(where)


TEXT = TaskKind(
    name="text",
    label=N_("Text"),
    help=N_("Answer a text: with another, with a label, or by filling its blanks."),
    source="Sutskever et al. 2014",
    reads="tokens",
    config="tfm_core.config.task:TextTaskConfig",
    load="tfm_core.data.text_data:load_text",
    shape="tfm_core.data.shape:text_shape",
    objective="tfm_core.training.masked:text_objective",
    probe="tfm_core.probe.snapshot:text_probe",
    snapshot="tfm_core.probe.snapshot:text_snapshot",
    inputs="tfm_core.inspect.attention.inputs:of_text",
    batches="tfm_core.inspect.attention.inputs:text_batch",
    mistakes="tfm_core.inspect.attention.mistakes:of_texts",
    own_text="tfm_core.inspect.attention.own_example:answered",
    batch_rows="tfm_core.inspect.training_step.batch:text_rows",
    class_name="tfm_core.inspect.training_step.batch:token_name",
    walk="tfm_core.inspect.walk.texts:of_texts",
)
IMAGE = TaskKind(
    name="image",
    label=N_("Pictures"),
    help=N_("Say what a picture shows, as one of a few classes."),
    source="LeCun et al. 1998",
    reads="pixels",
    config="tfm_core.config.image_tasks:ImageTaskConfig",
    load="tfm_core.data.image_data:load_images",
    shape="tfm_core.data.shape:image_shape",
    objective="tfm_core.training.objectives:ImageObjective",
    probe="tfm_core.probe.snapshot:image_probe",
    snapshot="tfm_core.probe.snapshot:image_snapshot",
    inputs="tfm_core.inspect.attention.inputs:of_picture",
    batches="tfm_core.inspect.attention.inputs:picture_batch",
    mistakes="tfm_core.inspect.attention.mistakes:of_pictures",
    own_text=None,
    batch_rows="tfm_core.inspect.training_step.batch:image_rows",
    class_name="tfm_core.inspect.training_step.batch:image_class",
    walk="tfm_core.inspect.walk.pictures:of_pictures",
)
CAPTION = TaskKind(
    name="caption",
    label=N_("Captions"),
    help=N_("Describe a picture in words."),
    source="Vinyals et al. 2015",
    reads="pixels",
    config="tfm_core.config.caption_task:CaptionTaskConfig",
    load="tfm_core.data.captions:load_captions",
    shape="tfm_core.data.shape:caption_shape",
    objective="tfm_core.training.caption_objective:CaptionObjective",
    probe="tfm_core.probe.snapshot:caption_probe",
    snapshot="tfm_core.probe.snapshot:caption_snapshot",
    inputs="tfm_core.inspect.attention.inputs:of_caption",
    batches="tfm_core.inspect.attention.inputs:caption_batch",
    mistakes="tfm_core.inspect.attention.mistakes:of_captions",
    own_text=None,
    batch_rows="tfm_core.inspect.training_step.batch:caption_rows",
    class_name="tfm_core.inspect.training_step.batch:caption_word",
    walk="tfm_core.inspect.walk.captions:of_captions",
)
CORPUS = TaskKind(
    name="corpus",
    label=N_("Language model"),
    help=N_("Continue a text, one token after the other."),
    source="Radford et al. 2018",
    reads="tokens",
    config="tfm_core.config.corpus_tasks:CorpusTaskConfig",
    load="tfm_core.data.corpus.load:load_corpus",
    shape="tfm_core.data.shape:corpus_shape",
    objective="tfm_core.training.language:LanguageObjective",
    probe="tfm_core.probe.snapshot:corpus_probe",
    snapshot="tfm_core.probe.snapshot:corpus_snapshot",
    inputs="tfm_core.inspect.attention.inputs:of_text",
    batches="tfm_core.inspect.attention.inputs:text_batch",
    mistakes=None,
    own_text="tfm_core.inspect.attention.own_example:continued_text",
    batch_rows="tfm_core.inspect.training_step.batch:text_rows",
    class_name="tfm_core.inspect.training_step.batch:token_name",
    walk="tfm_core.inspect.walk.texts:of_texts",
)
OWN_PICTURES = replace(
    IMAGE,
    name="own-pictures",
    label=N_("Pictures of your own"),
    help=N_("Say what a picture shows, as one of your own classes."),
    config="tfm_core.config.own_pictures:OwnPicturesTaskConfig",
    load="tfm_core.data.own.pictures_task:load_own_pictures",
)
OWN_TEXT = replace(
    TEXT,
    name="own",
    label=N_("Sentences of your own"),
    help=N_("Answer a sentence of your own data: with another, or with a label."),
    config="tfm_core.config.own_tasks:OwnTextTaskConfig",
    load="tfm_core.data.own.load:load_own",
    shape="tfm_core.data.shape:own_shape",
    objective="tfm_core.training.objectives:OwnObjective",
)
TASK_KINDS = Registry("kind of task", TEXT, IMAGE, CAPTION, CORPUS, OWN_PICTURES, OWN_TEXT)
