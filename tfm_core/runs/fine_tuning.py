"""What a run learns that trains an opened model further on a set of one's own."""

from __future__ import annotations

import json
from typing import Any

from tfm_core.anatomy.trained import TARGETS
from tfm_core.config import (
    Experiment,
    OpenedWordsConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    TunedConfig,
    TunedLabelsConfig,
    TunedTextConfig,
)
from tfm_core.config.pretrained_tasks import MAX_NAME, MAX_TOKENS
from tfm_core.data.own import place, sets
from tfm_core.data.own.kinds import SET_KINDS
from tfm_core.data.own.sets import OwnSet
from tfm_core.data.own.task import SPLITS
from tfm_core.data.vocabulary import NONE, SPECIALS
from tfm_core.pretrained.task import tokenizer_of
from tfm_core.pretrained.tuned import longest_context, tuned_writer
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
_POOLING = {"labels": {"pooling": "mean"}}
_EPOCHS, _MIN_STEPS, _MAX_STEPS = 3, 60, 400


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


def tuned(
    run: Run, own: OwnSet, *, trains: str = "all", n_last: int = 2, rank: int = 8, seed: int = 0
) -> Experiment:
    """Return the experiment that trains a run's model further on a set. Raises ValueError.

    Its first weights are kept in the run's folder, under the digest that the experiment names.
    """
    if (reason := why_not(run)) is not None:
        raise StudentError(reason)
    with place.below(run.folder.parent):
        return _tuned(run, own, trains=trains, n_last=n_last, rank=rank, seed=seed)


def from_scratch(experiment: Experiment) -> Experiment:
    """Return the same model on the same data from random weights, at a rate that suits those."""
    task = experiment.task_as(TunedConfig).replace(base="", trains="all")
    training = experiment.training.replace(learning_rate=_FROM_SCRATCH)
    return experiment.replace(task=task.model_dump(), training=training.model_dump())


def _tuned(run: Run, own: OwnSet, *, trains: str, n_last: int, rank: int, seed: int) -> Experiment:
    model, kind = run.experiment.model, KINDS[run.experiment.model.family]
    if own.kind != kind:
        raise StudentError(
            "The set “{name}” holds {found}; this model needs {needed}.",
            name=own.name,
            found=SET_KINDS[own.kind].label,
            needed=SET_KINDS[kind].label,
        )
    facts: dict[str, Any] = {
        **_opened_facts(run), "data": own.id, "trains": trains, "n_last": n_last, "rank": rank,
        "alpha": 2.0 * rank, "called": run.meta.name[:MAX_NAME],
    }  # fmt: skip
    if trains == "lora" and facts["architecture"] not in TARGETS:
        raise StudentError("LoRA is not known for this architecture; train its last layers.")
    task: TunedConfig
    if kind == "text":
        task = TunedTextConfig.parse(facts)
        context = min(CONTEXT, model.n_positions or CONTEXT, longest_context(task))
        n_train = len(tuned_writer(task).tokens) // context
        task = task.replace(context=context)
    else:
        task = _labels(run, own, facts)
        n_train = int(own.counts["train"])
    batch = min(_BATCH[kind], max(1, n_train))
    steps = min(_MAX_STEPS, max(_MIN_STEPS, _EPOCHS * n_train // batch))
    task = task.replace(base=first_weights(run))
    return Experiment.parse({
        "model": model.model_dump() | {"dropout": _DROPOUT} | _POOLING.get(kind, {}),
        "task": task.model_dump(),
        "training": {
            "steps": steps, "batch_size": batch, "learning_rate": _RATES[task.trains],
            "validate_every": max(1, steps // 10), "weight_decay": 0.01, "snapshots": 12,
        },
        "seed": seed,
    })  # fmt: skip


def _opened_facts(run: Run) -> dict[str, Any]:
    """Return what a task says of its model, which the task of another training says too."""
    task = run.experiment.task_as(OpenedWordsConfig)
    return {name: getattr(task, name) for name in OpenedWordsConfig.model_fields} | {
        name: getattr(task, name) for name in ("n_segments",) if hasattr(task, name)
    }


def _labels(run: Run, own: OwnSet, facts: dict[str, Any]) -> TunedLabelsConfig:
    """Return the task of labelled sentences, as long as the longest. Raises StudentError."""
    tokens = json.loads(own.content(sets.TOKENS))
    n_labels = len(tokens[1]["words"])
    if n_labels < 2:
        raise StudentError(
            "All sentences of “{name}” have one label; a classifier needs two.", name=own.name
        )
    task = run.experiment.task_as(OpenedWordsConfig)
    words = tokenizer_of(task).words
    lines = [
        json.loads(line)
        for split in SPLITS
        for line in own.content(f"{split}.jsonl").decode().splitlines()
    ]
    lengths = [len(words.cut(text).ids) for text, _label in lines]
    most = min(run.experiment.model.n_positions or MAX_TOKENS, MAX_TOKENS)
    n_long = sum(length > most for length in lengths)
    if n_long:
        raise StudentError(
            Paragraph(
                "pretrained/sentences-too-long", n=n_long, longest=max(lengths), most=most,
                name=own.name,
            )
        )  # fmt: skip
    n_tgt = n_labels + len(SPECIALS)
    return TunedLabelsConfig.parse({**facts, "context": max(lengths), "n_tgt": n_tgt})


def first_weights(run: Run) -> str:
    """Keep the weights of a run as the first ones of others; return their digest.

    Those that LoRA changed are written with its changes in them.
    """
    from tfm_core.pretrained import base
    from tfm_core.training.checkpoints import FILE, write_plain

    checkpoint = run.folder / "checkpoints" / "last" / FILE
    if run.experiment.task.is_opened:
        return base.keep(checkpoint, run.folder)
    plain = run.folder / base.FOLDER / "plain.safetensors"
    plain.parent.mkdir(exist_ok=True)
    write_plain(run.experiment, checkpoint.parent, plain)
    try:
        return base.keep(plain, run.folder)
    finally:
        plain.unlink()
