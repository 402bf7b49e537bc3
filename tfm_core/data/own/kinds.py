"""The kinds of sets: what each holds, the task that learns it, and experiments to begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.config.task import TaskConfig
from tfm_core.data.own import pictures_task
from tfm_core.data.own.proposals import Proposal, text_proposals, text_task_of
from tfm_core.data.own.sets import OwnSet
from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKind(Variant):
    """A kind of set.

    task: the task that learns it. task_of(own): its settings. proposals(own): experiments of
    sensible size, the usual one and others.
    """

    task: str
    task_of: Callable[[OwnSet], TaskConfig]
    proposals: Callable[[OwnSet], list[Proposal]]


SET_KINDS = Registry(
    "kind of set",
    SetKind(
        name="pairs",
        label=N_("Sentence pairs"),
        help=N_("A sentence and its answer per line: a translation, a reply, a correction."),
        source="Sutskever et al. 2014",
        task="own-pairs",
        task_of=text_task_of,
        proposals=text_proposals,
    ),
    SetKind(
        name="labels",
        label=N_("Labelled sentences"),
        help=N_("A sentence and its label per line."),
        source="Devlin et al. 2019",
        task="own-labels",
        task_of=text_task_of,
        proposals=text_proposals,
    ),
    SetKind(
        name="text",
        label=N_("Plain text"),
        help=N_("A text that a GPT learns to continue."),
        source="Radford et al. 2018",
        task="own-text",
        task_of=text_task_of,
        proposals=text_proposals,
    ),
    SetKind(
        name="pictures",
        label=N_("Pictures"),
        help=N_("Pictures in one folder per class, as a zip, or as IDX files."),
        source="LeCun et al. 1998",
        task="own-pictures",
        task_of=pictures_task.task_of,
        proposals=pictures_task.proposals,
    ),
)


def task_of(own: OwnSet) -> TaskConfig:
    """Return the settings of the task that learns a set. Raises ValueError."""
    return SET_KINDS[own.kind].task_of(own)


def proposals(own: OwnSet) -> list[Proposal]:
    """Return what to train on a set, of sensible sizes. Raises ValueError."""
    return SET_KINDS[own.kind].proposals(own)


def proposal(own: OwnSet) -> Proposal:
    """Return the usual one of the proposals. Raises ValueError."""
    return next(one for one in proposals(own) if one.name == "usual")
