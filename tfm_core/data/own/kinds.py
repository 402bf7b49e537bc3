"""The kinds of sets: what each holds, and what may be trained on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfm_core.config.task import TaskConfig
from tfm_core.data.own.proposal import Proposal
from tfm_core.data.own.sets import OwnSet
from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKind(Variant):
    """A kind of set, and its parts, each as ``"module:name"``.

    task: the task that learns it. task_of(own): its settings. proposals(own): experiments of
    sensible size, the usual one and others.
    """

    task: str
    task_of: str
    proposals: str

    def part(self, name: str) -> Any:
        """Return what a part names."""
        return resolve(getattr(self, name))


_TEXTS = "tfm_core.data.own.text_proposals"
_PICTURES = "tfm_core.data.own.pictures_task"
SET_KINDS = Registry(
    "kind of set",
    SetKind(
        name="pairs",
        label=N_("Sentence pairs"),
        help=N_("A sentence and its answer a line: a translation, a reply, another spelling."),
        source="Sutskever et al. 2014",
        task="own-pairs",
        task_of=f"{_TEXTS}:text_task_of",
        proposals=f"{_TEXTS}:proposals",
    ),
    SetKind(
        name="labels",
        label=N_("Labelled sentences"),
        help=N_("A sentence and its label a line, of two labels or more."),
        source="Devlin et al. 2019",
        task="own-labels",
        task_of=f"{_TEXTS}:text_task_of",
        proposals=f"{_TEXTS}:proposals",
    ),
    SetKind(
        name="text",
        label=N_("A text"),
        help=N_("A running text, which a GPT learns to continue."),
        source="Radford et al. 2018",
        task="own-text",
        task_of=f"{_TEXTS}:text_task_of",
        proposals=f"{_TEXTS}:proposals",
    ),
    SetKind(
        name="pictures",
        label=N_("Pictures"),
        help=N_("Pictures in folders by class, as a zip, or as IDX files."),
        source="LeCun et al. 1998",
        task="own-pictures",
        task_of=f"{_PICTURES}:task_of",
        proposals=f"{_PICTURES}:proposals",
    ),
)


def task_of(own: OwnSet) -> TaskConfig:
    """Return the settings of the task that learns a set. Raises ValueError, in a sentence."""
    task: TaskConfig = SET_KINDS[own.kind].part("task_of")(own)
    return task


def proposals(own: OwnSet) -> list[Proposal]:
    """Return what to train on a set, of sensible sizes. Raises ValueError, in a sentence."""
    found: list[Proposal] = SET_KINDS[own.kind].part("proposals")(own)
    return found


def proposal(own: OwnSet) -> Proposal:
    """Return the usual one of the proposals. Raises ValueError, in a sentence."""
    return next(one for one in proposals(own) if one.name == "usual")
