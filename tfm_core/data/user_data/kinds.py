"""The kinds of sets: what each holds, the task that learns it, and experiments to begin with.

Small sets want small models, long sentences small batches, and a training reads every example tens
of times: the sizes are those with which the presets of a similar task learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.corpus_tasks import CorpusTaskConfig
from tfm_core.choices.config.image_tasks import OwnPicturesTaskConfig
from tfm_core.choices.config.task import TaskConfig
from tfm_core.choices.config.text_tasks import OwnTextTaskConfig
from tfm_core.data.user_data import pictures, texts
from tfm_core.data.user_data.sets import Prepared, UserSet, damaged
from tfm_core.data.user_data.uploads import Report
from tfm_core.sentences import N_

SET_KINDS = {
    "pairs": N_("Sentence pairs"),
    "labels": N_("Labelled sentences"),
    "text": N_("Plain text"),
    "pictures": N_("Pictures"),
}
"""What a set holds; a task of the name ``own-KIND`` learns it."""
_FAMILIES = {"pairs": "encoder-decoder", "labels": "encoder-only", "text": "decoder-only"}


@dataclass(frozen=True, slots=True)
class Proposal:
    """An experiment of sensible size on a set: its name, what it is for, and all its settings."""

    name: str
    label: str
    why: str
    experiment: Experiment


_MIN_STEPS, _MAX_STEPS = 200, 4000
_READ = 40  # times that a training reads each sentence, of a set that is neither small nor large
_PICTURE_READ, _MAX_PICTURE_STEPS = 20, 3000  # of each picture
_TOKENS = 2048  # of a batch, source and target: what a step of a small model takes in passing


def task_of(user_set: UserSet) -> TaskConfig:
    """Return the settings of the task that learns a set. Raises ValueError."""
    if user_set.kind == "pictures":
        return pictures.task_of(user_set)
    if user_set.kind == "text":
        unit = str(user_set.details.get("unit"))
        return CorpusTaskConfig.parse({"name": "own-text", "data": user_set.id, "unit": unit})
    sizes = {name: user_set.details.get(name) for name in ("src_len", "tgt_len", "n_src", "n_tgt")}
    if user_set.kind not in {"pairs", "labels"} or None in sizes.values():
        raise damaged(user_set.name)
    return OwnTextTaskConfig.parse({"name": f"own-{user_set.kind}", "data": user_set.id, **sizes})


def report_of(user_set: UserSet) -> Report:
    """Return what a set holds. Raises SetDamaged."""
    read = pictures.report_of if user_set.kind == "pictures" else texts.report_of
    return read(user_set)


def prepare(report: Report, *, name: str = "") -> Prepared:
    """Make a set of a report. Raises ValueError where it is refused."""
    made = pictures.prepare if report.kind == "pictures" else texts.prepare
    return made(report, name=name)


def proposals(user_set: UserSet) -> list[Proposal]:
    """Return what to train on a set, of sensible sizes. Raises ValueError."""
    task = task_of(user_set)
    if isinstance(task, OwnPicturesTaskConfig):
        return _picture_proposals(task)
    return _text_proposals(task, _FAMILIES[user_set.kind], int(user_set.counts["train"]))


def proposal(user_set: UserSet) -> Proposal:
    """Return the usual one of the proposals. Raises ValueError."""
    return next(proposal for proposal in proposals(user_set) if proposal.name == "usual")


def _text_proposals(task: Any, family: str, n_train: int) -> list[Proposal]:
    """Return a quick look, and what suits a set."""
    more: dict[str, Any] = {}
    if isinstance(task, CorpusTaskConfig):
        context = max(8, min(32 if task.unit == "words" else 64, n_train // 20))
        task = task.replace(context=context)
        batch, steps = 32, 600 if n_train < 5_000 else 1500 if n_train < 100_000 else 3000
        quick_steps, width, depth = steps // 3, 48 if n_train < 20_000 else 96, 2
        more = {"dropout": 0.1, "tie_embeddings": True}
        why = N_("A small GPT with a context of {context} tokens.", context=context)
        why_quick = N_("See whether half the width starts to learn in a third of the steps.")
    else:
        # fewer sentences a step where they are long, and many steps an epoch
        batch = min(64, max(8, _TOKENS // (task.src_len + task.tgt_len)), max(8, n_train // 8))
        steps = round(min(_MAX_STEPS, max(_MIN_STEPS, _READ * n_train // batch)) / 100) * 100
        quick_steps = max(200, steps // 4)
        width = 32 if n_train < 300 else 64 if n_train < 20_000 else 128
        depth = 2 if n_train >= 3_000 else 1
        why = N_("A model sized for this number of sentences.")
        why_quick = N_("See whether half the width starts to learn in a quarter of the steps.")
    usual = _experiment_on(task, family, _sized(family, width, depth) | more, batch, steps)
    quick = _experiment_on(task, family, _sized(family, width // 2, 1), batch, quick_steps)
    return [
        Proposal("usual", N_("Usual"), why, usual),
        Proposal("quick", N_("Quick look"), why_quick, quick),
    ]


def _sized(family: str, width: int, depth: int) -> dict[str, Any]:
    """Return a model of heads 16 wide and a hidden layer of twice its width."""
    width -= width % 16
    depths = (
        {"n_encoder_layers": depth, "n_decoder_layers": depth}
        if family == "encoder-decoder"
        else {"n_layers": max(depth, 1)}
    )
    return {"d_model": width, "n_heads": width // 16, "d_ff": 2 * width, **depths}


def _experiment_on(
    task: TaskConfig, family: str, model: dict[str, Any], batch: int, steps: int
) -> Experiment:
    """Return an experiment on a task. model: settings besides the family's defaults."""
    values = default_sections(family, task.name)
    values["model"] |= model
    values["task"] = task.model_dump()
    values["training"] |= {"steps": steps, "batch_size": batch}
    return Experiment.parse(values)


def _picture_proposals(task: OwnPicturesTaskConfig) -> list[Proposal]:
    """Return experiments on a set: a quick look, the usual one and a careful one.

    Sizes follow from the pictures: about seven patches in a row, and enough steps to read each
    picture about twenty times.
    """
    n_train, batch = task.n_learned - task.n_validation, 64
    steps = min(_MAX_PICTURE_STEPS, max(2 * _MIN_STEPS, _PICTURE_READ * n_train // batch))
    steps = round(steps / 100) * 100
    usual: dict[str, Any] = {"d_model": 48, "n_heads": 3, "d_ff": 96}
    usual["patch_size"] = pictures.patch(task.side)
    moved = {"shift": 2.0, "rotation": 10.0, "scale": 0.1}
    plans = (
        (
            "quick",
            N_("Quick look"),
            N_("See whether a small model starts to learn in a few steps."),
            {**usual, "d_model": 32, "n_heads": 2, "d_ff": 64},
            {"shift": 1.0},
            max(_MIN_STEPS, steps // 4),
        ),
        (
            "usual",
            N_("Usual"),
            N_("A model sized for digits; pictures are slightly moved and rotated."),
            {**usual, "stem": "conv"},
            moved,
            steps,
        ),
        (
            "careful",
            N_("Careful"),
            N_("A deeper, wider model, trained twice as long, for classes that look alike."),
            {**usual, "stem": "conv", "n_layers": 4, "d_model": 64, "n_heads": 4, "d_ff": 192}
            | {"dropout": 0.1},
            moved,
            min(2 * steps, 2 * _MAX_PICTURE_STEPS),
        ),
    )
    batch = batch if n_train >= 2 * batch else 16
    return [
        Proposal(
            name, label, why, _experiment_on(task.replace(**moves), "vit", model, batch, n_steps)
        )
        for name, label, why, model, moves, n_steps in plans
    ]
