"""What the attention page shows: kind, layer, head, example, step and patch, mirrored in the link.

Numbers count from 1 in the link, as on the page, and from 0 inside. This module owns the keys of
``st.session_state`` that remember the selection when the page is left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.ui.words import _

NAMES = ("kind", "layer", "head", "example", "step", "patch", "text")
OWN = "own"
MAX_TEXT = 400
_KEY = "attention"
_PLAYING = "attention-playing"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a run has to show: kind -> number of layers, heads, examples, snapshot steps, patches.

    The first kind is the one shown when nothing is chosen, and so is the first patch.
    """

    kinds: Mapping[str, int]
    n_heads: int
    n_examples: int
    steps: tuple[int, ...]
    patches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at. example None: the user's own; step None: always the newest."""

    kind: str
    layer: int = 0
    head: int = 0
    example: int | None = 0
    step: int | None = None
    patch: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was shown last, the sentences that go with it, and what the link said then."""

    run_id: str
    selection: Selection
    problems: tuple[str, ...] = ()
    link: Mapping[str, str] = field(default_factory=dict)


def current(run_id: str, offer: Offer) -> tuple[Selection, tuple[str, ...]]:
    """Return what to show of a run, and what in the link could not be followed, in sentences."""
    link = _linked()
    kept: _Kept | None = st.session_state.get(_KEY)
    if kept is not None and kept.run_id != run_id:  # what the link says is of another run
        fresh = dataclasses.replace(kept.selection, example=0, step=None, text="")
        selection, problems = resolve(to_query(fresh), offer)[0], ()
    elif kept is not None and link in ({}, kept.link):
        selection, problems = resolve(to_query(kept.selection), offer)[0], kept.problems
    else:  # a link was opened, or the browser went back
        selection, found = resolve(link, offer)
        problems = tuple(found)
    _keep(run_id, selection, problems, say=bool(link) and not _is_playing())
    return selection, problems


def choose(run_id: str, **changes: Any) -> None:
    """Show something else of a run, and say so in the link."""
    kept: _Kept = st.session_state[_KEY]
    selection = dataclasses.replace(kept.selection, **changes)
    _keep(run_id, selection, say=not _is_playing())


def to_query(selection: Selection) -> dict[str, str]:
    """Return the part of a link that reopens this view."""
    query = {
        "kind": selection.kind,
        "layer": str(selection.layer + 1),
        "head": str(selection.head + 1),
        "example": OWN if selection.example is None else str(selection.example + 1),
    }
    if selection.step is not None:
        query["step"] = str(selection.step)
    if selection.patch:
        query["patch"] = selection.patch
    if selection.text:
        query["text"] = selection.text
    return query


def resolve(query: Mapping[str, str], offer: Offer) -> tuple[Selection, list[str]]:
    """Return the nearest view there is to what a link asks for, and a sentence for each change."""
    problems: list[str] = []
    kind = next(iter(offer.kinds))
    if query.get("kind", kind) in offer.kinds:
        kind = query.get("kind", kind)
    else:
        problems.append(_one_of("kind", query["kind"], tuple(offer.kinds), kind))
    patch = offer.patches[0] if offer.patches else ""
    if query.get("patch", patch) in offer.patches:
        patch = query.get("patch", patch)
    elif "patch" in query and offer.patches:
        problems.append(_one_of("patch", query["patch"], offer.patches, patch))
    own = query.get("example") == OWN
    selection = Selection(
        kind=kind,
        layer=_place(query, "layer", offer.kinds[kind], problems.append),
        head=_place(query, "head", offer.n_heads, problems.append),
        example=None if own else _place(query, "example", offer.n_examples, problems.append),
        step=_step(query, offer.steps, problems.append),
        patch=patch,
        text=query.get("text", "")[:MAX_TEXT],
    )
    return selection, problems


def nearest_step(step: int | None, steps: tuple[int, ...]) -> int:
    """Return the step of ``steps`` that is nearest; the newest for None."""
    return steps[-1] if step is None else min(steps, key=lambda known: abs(known - step))


def _place(query: Mapping[str, str], name: str, count: int, say: Callable[[str], None]) -> int:
    text = query.get(name, "1")
    number = _number(text)
    if number is not None and 1 <= number <= count:
        return number - 1
    used = 1 if number is None else min(max(number, 1), max(count, 1))
    rule = _("{name} is “{text}” in the link, but must be from 1 to {count}; {used} is shown.")
    say(rule.format(name=name, text=text[:20], count=count, used=used))
    return used - 1


def _step(
    query: Mapping[str, str], steps: tuple[int, ...], say: Callable[[str], None]
) -> int | None:
    if "step" not in query:
        return None
    step = _number(query["step"])
    if step is None:
        rule = _("step is “{text}” in the link, but must be a number; the newest is shown.")
        say(rule.format(text=query["step"][:20]))
        return None
    if not steps or step in steps:
        return step
    used = nearest_step(step, steps)
    rule = _("There is no snapshot of step {step}; the nearest, step {used}, is shown.")
    say(rule.format(step=f"{step:,}", used=f"{used:,}"))
    return used


def _number(text: str) -> int | None:
    """Return a whole number of at most nine digits, or None."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None


def _one_of(name: str, text: str, known: tuple[str, ...], used: str) -> str:
    listed = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    rule = _("{name} is “{text}” in the link, but must be one of {known}; {used} is shown.")
    if len(known) == 1:
        rule = _("{name} is “{text}” in the link, but this model has only {known}.")
    return rule.format(name=name, text=text[:20], known=listed, used=used)


def playing_since() -> float | None:
    """Return when the last snapshot was shown while the training plays, or None."""
    return st.session_state.get(_PLAYING)


def set_playing(moment: float | None) -> None:
    """Play the training, or stop. While it plays the link stands still: each change of it is an
    entry in the browser's history.
    """
    if moment is None:
        st.session_state.pop(_PLAYING, None)
    else:
        st.session_state[_PLAYING] = moment


def _is_playing() -> bool:
    return playing_since() is not None


def _linked() -> dict[str, str]:
    return {name: st.query_params[name] for name in NAMES if name in st.query_params}


def _keep(run_id: str, selection: Selection, problems: tuple[str, ...] = (), *, say: bool) -> None:
    link = _linked()
    wanted = to_query(selection)
    if say and link != wanted:
        others = {key: value for key, value in st.query_params.items() if key not in NAMES}
        st.query_params.from_dict({**others, "run": run_id, **wanted})
        link = wanted
    st.session_state[_KEY] = _Kept(run_id, selection, problems, link)
