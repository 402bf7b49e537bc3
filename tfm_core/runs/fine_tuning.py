"""Experiments that train an opened model further on a data set of the user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tfm_core.choices.config import (
    Experiment,
    OpenedWordsConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    TunedConfig,
    TunedLabelsConfig,
    TunedTextConfig,
)
from tfm_core.choices.config.pretrained_tasks import MAX_NAME, MAX_TOKENS
from tfm_core.data.tasks import corpus_task
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.kinds import SET_KINDS
from tfm_core.data.user_data.sets import SPLITS, UserSet
from tfm_core.data.user_data.task import rows_of, sides_of
from tfm_core.data.vocabulary import NONE, SPECIALS
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph, StudentError

KINDS = {"encoder-only": "labels", "decoder-only": "text"}
"""The kind of sets that a model of a family is trained further on."""

CONTEXT = 64
"""Tokens that a language model reads at once while it is trained further."""

_RATES = {"all": 1e-4, "last": 3e-4, "lora": 1e-3}
"""Learning rates: the fewer numbers are trained, the further each may go."""
_FROM_SCRATCH = 3e-4
_BATCH = {"labels": 16, "text": 8}
_DROPOUT = 0.1
_NOT_READ = "0" * 20
"""Stands for the digest of weights that were not read yet."""
_POOLING = {"labels": {"pooling": "mean"}}
_EPOCHS, _MIN_STEPS, _MAX_STEPS = 3, 60, 400


@dataclass(frozen=True, slots=True)
class Part:
    """What is trained: everything, the last layers (how many), or LoRA (its rank and alpha).

    steps, rate: for how long, and the learning rate. None: what suits the part and the data.
    """

    trains: str = "all"
    n_last: int = 2
    rank: int = 8
    alpha: float | None = None
    steps: int | None = None
    rate: float | None = None


_ALL = Part()


def why_not(run: Run) -> str | None:
    """Return why a run's model cannot be trained further on other data, or None."""
    if run.problem is not None:
        return run.problem
    task = run.experiment.task
    known = (PretrainedTextConfig, PretrainedReaderConfig, TunedConfig)
    if not isinstance(task, known) or run.experiment.model.family not in KINDS:
        return Paragraph("pretrained/not-tunable")
    if run.status.is_active or not run.has_checkpoint:
        return Paragraph("pretrained/not-over")
    if KINDS[run.experiment.model.family] == "labels" and task.pad_id == NONE:
        return Paragraph("pretrained/no-padding")
    return None


def tuned(run: Run, own: UserSet | None, part: Part = _ALL, *, seed: int = 0) -> Experiment:
    """Return the experiment that trains a run's model further on a set. Raises ValueError.

    own: without one a language model learns the text that comes with the app. The first weights
    are kept in the run's folder, under the digest that the experiment names.
    """
    found = planned(run, own, part, seed=seed)
    task = found.task_as(TunedConfig).replace(base=first_weights(run))
    return found.replace(task=task.model_dump())


def planned(run: Run, own: UserSet | None, part: Part = _ALL, *, seed: int = 0) -> Experiment:
    """Return the same before the first weights are read: it has all sizes but cannot start."""
    if (reason := why_not(run)) is not None:
        raise StudentError(reason)
    with sets.below(run.folder.parent):
        return _planned(run, own, part, seed)


def from_scratch(experiment: Experiment) -> Experiment:
    """Return the same model on the same data from random weights, at a rate that suits those."""
    task = experiment.task_as(TunedConfig).replace(base="", trains="all")
    training = experiment.trained.replace(learning_rate=_FROM_SCRATCH)
    return experiment.replace(task=task.model_dump(), training=training.model_dump())


def _planned(run: Run, own: UserSet | None, part: Part, seed: int) -> Experiment:
    model, kind = run.experiment.model, KINDS[run.experiment.model.family]
    if own is None and kind == "labels":
        raise StudentError("Choose a data set of labelled sentences.")
    if own is not None and own.kind != kind:
        raise StudentError(
            "The data set “{name}” holds {found}; this model needs {needed}.",
            name=own.name,
            found=SET_KINDS[own.kind],
            needed=SET_KINDS[kind],
        )
    opened = run.experiment.task_as(OpenedWordsConfig)
    names = [*OpenedWordsConfig.model_fields, "n_segments"]
    facts: dict[str, Any] = {
        **{name: getattr(opened, name) for name in names if hasattr(opened, name)},
        "data": "" if own is None else own.id,
        "trains": part.trains,
        "n_last": part.n_last,
        "rank": part.rank,
        "base": _NOT_READ,
        "alpha": 2.0 * part.rank if part.alpha is None else part.alpha,
        "called": run.meta.name[:MAX_NAME],
    }
    task: TunedConfig
    if own is None or kind == "text":
        task = TunedTextConfig.parse(facts)
        words = corpus_task(task)
        context = min(CONTEXT, model.n_positions or CONTEXT, words.window)
        n_train = len(words.tokens) // context
        task = task.replace(context=context)
    else:
        task = _labels(run, own, facts)
        n_train = int(own.counts["train"])
    batch = min(_BATCH[kind], max(1, n_train))
    usual = min(_MAX_STEPS, max(_MIN_STEPS, _EPOCHS * n_train // batch))
    steps = usual if part.steps is None else part.steps
    rate = _RATES[task.trains] if part.rate is None else part.rate
    return Experiment.parse(
        {
            "model": model.model_dump() | {"dropout": _DROPOUT} | _POOLING.get(kind, {}),
            "task": task.model_dump(),
            "training": {
                "steps": steps,
                "batch_size": batch,
                "learning_rate": rate,
                "validate_every": max(1, steps // 10),
                "weight_decay": 0.01,
                "snapshots": 12,
            },
            "seed": seed,
        }
    )


def _labels(run: Run, own: UserSet, facts: dict[str, Any]) -> TunedLabelsConfig:
    """Return the task of labelled sentences, as long as the longest. Raises StudentError."""
    _sentences, (_cut, labels) = sides_of(own)
    n_labels = len(labels)
    if n_labels < 2:
        raise StudentError(
            "All sentences of “{name}” have one label; a classifier needs two.", name=own.name
        )
    lengths = _lengths(str(own.folder), run.experiment.task_as(OpenedWordsConfig))
    most = min(run.experiment.model.n_positions or MAX_TOKENS, MAX_TOKENS)
    n_long = sum(length > most for length in lengths)
    if n_long:
        raise StudentError(
            Paragraph(
                "pretrained/sentences-too-long",
                n=n_long,
                longest=max(lengths),
                most=most,
                name=own.name,
            )
        )
    n_tgt = n_labels + len(SPECIALS)
    return TunedLabelsConfig.parse({**facts, "context": max(lengths), "n_tgt": n_tgt})


@lru_cache(maxsize=8)
def _lengths(folder: str, task: OpenedWordsConfig) -> list[int]:
    """Return the tokens of each sentence of a set."""
    from tfm_core.data.opened_task import tokenizer_of  # with torch

    tokenizer, own = tokenizer_of(task).tokenizer, sets.opened(Path(folder))
    return [len(tokenizer.cut(text)) for split in SPLITS for text, _label in rows_of(own, split)]


def first_weights(run: Run) -> str:
    """Keep the weights of a run as the first ones of others; return their digest.

    Those that LoRA changed are written with its changes in them.
    """
    from tfm_core.pretrained import base
    from tfm_core.training.checkpoints import FILE, write_plain

    checkpoint = run.folder / "checkpoints" / "last" / FILE
    if run.experiment.training is None:
        return base.keep(checkpoint, run.folder)
    plain = run.folder / base.FOLDER / "plain.safetensors"
    plain.parent.mkdir(exist_ok=True)
    write_plain(run.experiment, checkpoint.parent, plain)
    try:
        return base.keep(plain, run.folder)
    finally:
        plain.unlink()
