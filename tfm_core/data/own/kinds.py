"""The kinds of sets: what each holds, and what may be trained on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfm_core.config.task import TaskConfig
from tfm_core.data.own.proposal import Proposal
from tfm_core.data.own.sets import OwnSet
from tfm_core.sentences import N_
from tfm_core.variants.record import LazyModule, Registry, Variant

if TYPE_CHECKING:
    from tfm_core.data.own import pictures_task, text_proposals
else:  # imported where something of it is used first
    pictures_task = LazyModule("tfm_core.data.own.pictures_task")
    text_proposals = LazyModule("tfm_core.data.own.text_proposals")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKind(Variant):
    """A kind of set, and its parts, each imported where it is used.

    task: the task that learns it. task_of()(own): its settings. proposals()(own): experiments of
    sensible size, the usual one and others.
    """

    task: str
    task_of: Callable[[], Callable[[OwnSet], TaskConfig]]
    proposals: Callable[[], Callable[[OwnSet], list[Proposal]]]


SET_KINDS = Registry(
    "kind of set",
    SetKind(
        name="pairs",
        label=N_("Sentence pairs"),
        help=N_("A sentence and its answer per line: a translation, a reply, a correction."),
        source="Sutskever et al. 2014",
        task="own-pairs",
        task_of=lambda: text_proposals.text_task_of,
        proposals=lambda: text_proposals.proposals,
    ),
    SetKind(
        name="labels",
        label=N_("Labelled sentences"),
        help=N_("A sentence and its label per line."),
        source="Devlin et al. 2019",
        task="own-labels",
        task_of=lambda: text_proposals.text_task_of,
        proposals=lambda: text_proposals.proposals,
    ),
    SetKind(
        name="text",
        label=N_("Plain text"),
        help=N_("A text that a GPT learns to continue."),
        source="Radford et al. 2018",
        task="own-text",
        task_of=lambda: text_proposals.text_task_of,
        proposals=lambda: text_proposals.proposals,
    ),
    SetKind(
        name="pictures",
        label=N_("Pictures"),
        help=N_("Pictures in one folder per class, as a zip, or as IDX files."),
        source="LeCun et al. 1998",
        task="own-pictures",
        task_of=lambda: pictures_task.task_of,
        proposals=lambda: pictures_task.proposals,
    ),
)


def task_of(own: OwnSet) -> TaskConfig:
    """Return the settings of the task that learns a set. Raises ValueError, in a sentence."""
    return SET_KINDS[own.kind].task_of()(own)


def proposals(own: OwnSet) -> list[Proposal]:
    """Return what to train on a set, of sensible sizes. Raises ValueError, in a sentence."""
    return SET_KINDS[own.kind].proposals()(own)


def proposal(own: OwnSet) -> Proposal:
    """Return the usual one of the proposals. Raises ValueError, in a sentence."""
    return next(one for one in proposals(own) if one.name == "usual")
