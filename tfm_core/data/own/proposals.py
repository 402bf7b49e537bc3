"""Experiments of sensible size on a set of texts.

Small sets want small models, long sentences small batches, and a training reads every example tens
of times: the sizes are those with which the presets of a similar task learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfm_core.config import Experiment
from tfm_core.config.codec import default_sections
from tfm_core.config.corpus_tasks import CorpusTaskConfig
from tfm_core.config.own_tasks import OwnTextTaskConfig
from tfm_core.config.task import TaskConfig
from tfm_core.data.own.sets import OwnSet, damaged
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True)
class Proposal:
    """An experiment of sensible size on a set: its name, what it is for, and all its settings."""

    name: str
    label: str
    why: str
    experiment: Experiment


_MIN_STEPS, _MAX_STEPS = 200, 4000
_READ = 40  # times that a training reads each sentence, of a set that is neither small nor large
_TOKENS = 2048  # of a batch, source and target: what a step of a small model takes in passing


def text_task_of(own: OwnSet) -> OwnTextTaskConfig | CorpusTaskConfig:
    """Return the settings that learn a set of texts. Raises ValueError."""
    if own.kind == "text":
        unit = str(own.details.get("unit"))
        return CorpusTaskConfig.parse({"name": "own-text", "data": own.id, "unit": unit})
    sizes = {name: own.details.get(name) for name in ("src_len", "tgt_len", "n_src", "n_tgt")}
    if own.kind not in {"pairs", "labels"} or None in sizes.values():
        raise damaged(own.name)
    return OwnTextTaskConfig.parse({"name": f"own-{own.kind}", "data": own.id, **sizes})


def text_proposals(own: OwnSet) -> list[Proposal]:
    """Return what to train on a set: a quick look, and what suits it. Raises ValueError."""
    task = text_task_of(own)
    families = {"pairs": "encoder-decoder", "labels": "encoder-only", "text": "decoder-only"}
    family = families[own.kind]
    n_train = int(own.counts["train"])
    if isinstance(task, CorpusTaskConfig):
        return _of_text(task, n_train)
    # fewer sentences a step where they are long, and many steps an epoch
    batch = min(64, max(8, _TOKENS // (task.src_len + task.tgt_len)), max(8, n_train // 8))
    steps = round(min(_MAX_STEPS, max(_MIN_STEPS, _READ * n_train // batch)) / 100) * 100
    width = 32 if n_train < 300 else 64 if n_train < 20_000 else 128
    deep = n_train >= 3_000
    quick = experiment_on(task, family, _sized(family, width // 2, 1), batch, max(200, steps // 4))
    usual = experiment_on(task, family, _sized(family, width, 2 if deep else 1), batch, steps)
    return _usual_and_quick(
        (N_("Sized for this many sentences, each read many times."), usual),
        (N_("Half as wide, a quarter of the steps: does it start to learn?"), quick),
    )


def _usual_and_quick(
    usual: tuple[str, Experiment], quick: tuple[str, Experiment]
) -> list[Proposal]:
    return [
        Proposal("usual", N_("Usual"), *usual),
        Proposal("quick", N_("Quick look"), *quick),
    ]


def _of_text(task: CorpusTaskConfig, n_tokens: int) -> list[Proposal]:
    context = 32 if task.unit == "words" else 64
    context = max(8, min(context, n_tokens // 20))
    task = task.replace(context=context)
    steps = 600 if n_tokens < 5_000 else 1500 if n_tokens < 100_000 else 3000
    width = 48 if n_tokens < 20_000 else 96
    family = "decoder-only"
    sized = _sized(family, width, 2) | {"dropout": 0.1, "tie_embeddings": True}
    usual = experiment_on(task, family, sized, 32, steps)
    quick = experiment_on(task, family, _sized(family, width // 2, 1), 32, steps // 3)
    return _usual_and_quick(
        (N_("A small GPT with a context of {context} tokens.", context=context), usual),
        (N_("Half as wide, a third of the steps: does it start to learn?"), quick),
    )


def _sized(family: str, width: int, depth: int) -> dict[str, Any]:
    """Return a model of heads 16 wide and a hidden layer of twice its width."""
    width -= width % 16
    depths = (
        {"n_encoder_layers": depth, "n_decoder_layers": depth}
        if family == "encoder-decoder"
        else {"n_layers": max(depth, 1)}
    )
    return {"d_model": width, "n_heads": width // 16, "d_ff": 2 * width, **depths}


def experiment_on(
    task: TaskConfig, family: str, model: dict[str, Any], batch: int, steps: int
) -> Experiment:
    """Return an experiment on a task. model: settings besides the family's defaults."""
    values = default_sections(family, task.name)
    values["model"] |= model
    values["task"] = task.model_dump()
    values["training"] |= {"steps": steps, "batch_size": batch}
    return Experiment.parse(values)
