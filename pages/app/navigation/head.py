"""The head of a page: run, step and example, chosen once for all pages and kept in the address.

    run = head.run(NEEDS)  # None where the page says why there is none
    step = head.step(steps)
    example = head.example(run, names)
    moment = head.moment(run)  # both, of a run whose weights are asked

A page asks for what it shows, before it draws; the widgets stand side by side below its header.
A page that shows something else where no run fits says so with ``is_needed``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.address.parameters import NEWEST, SavedStep, named
from pages.app.model.answer import example_name
from pages.app.navigation import page_table
from pages.app.runs import run_actions, run_words, runs_access, shown_run
from pages.app.runs.shown_run import Needs
from pages.app.typed import escape
from pages.components.effects import announce_end
from pages.components.pickers import Thumbnail, thumbnails
from pages.i18n import N_, _
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.attention.trained import steps_of
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

OWN = "own"
"""What the address calls an example of the visitor's own."""
STEP = "head-step"
_PARTS = ("run", "step", "example", "view")
_TICK = 2.0  # seconds
_MAX_OFFERED = 40
_MAX_FITTING = 4
_ALL = ""  # in the menu, beside ids of runs
_TRAIN = "train"  # in the menu, beside ids of runs


_PLACES: ContextVar[tuple[DeltaGenerator, ...] | None] = ContextVar("_PLACES", default=None)
"""The places of the parts, and that below them for what the link has wrong."""
_IS_NAMED: ContextVar[bool] = ContextVar("_IS_NAMED", default=False)


def begin() -> None:
    """Forget the head of the page before; give what an older link says the names of today."""
    _PLACES.set(None)
    _IS_NAMED.set(False)
    before = view.query()
    _page, query = page_table.current_address(state.page(), before)
    view.put_query(dict.fromkeys(before.keys() - query.keys()) | query)


def run(needs: Needs, *, is_needed: bool = True) -> Run | None:
    """Name the run of the page and return it; None where the page says why it cannot show it.

    In place of a run that does not fit, the page shows one that does, and says so. The run stays
    the current one. is_needed: else the page shows something else then, and nothing is said.
    """
    chosen = found = shown_run.run_to_show(needs)
    fits = chosen is not None and chosen.problem is None and needs.fits(chosen.experiment)
    if is_needed and chosen is not None and chosen.problem is None and not fits:
        found = next(iter(shown_run.fitting(needs)), None)
    _name(found)
    if not is_needed:
        return found if fits else None
    if found is None:
        shown_run.preset_buttons(_nothing(needs), needs.presets, key="head-train")
        return None
    if found.problem is not None:
        show.problem(found.problem)
    elif not needs.is_ready(found):
        shown_run.no_weights(found)
    else:
        if chosen is not found and chosen is not None:
            words = _(
                "This page needs {what}, so it shows another run instead of “{name}” ({learns}).",
                name=escape(chosen.meta.name),
                learns=escape(run_words.learns(chosen)),
                what=_(needs.what),
            )
            st.caption(words)
        return found
    _offer(needs)
    return None


def _nothing(needs: Needs) -> str:
    return _("This page needs {what}, and there is none yet.", what=_(needs.what))


def _offer(needs: Needs) -> None:
    """Offer runs that fit, the first of each task and model, or to train one."""
    kinds: dict[tuple[str, str], Run] = {}
    for one in shown_run.fitting(needs):
        kinds.setdefault((one.experiment.model.family, one.experiment.task.kind), one)
    if not kinds:
        shown_run.preset_buttons(_nothing(needs), needs.presets, key="head-train")
        return
    st.markdown(_("Other runs for this page:"))
    with st.container(horizontal=True, gap="small"):
        for number, one in enumerate(list(kinds.values())[:_MAX_FITTING]):
            st.button(
                f"{escape(one.meta.name)} · {escape(run_words.learns(one))}",
                type="secondary" if number else "primary",
                key=f"head-open-{one.id}",
                on_click=state.set_current_run,
                args=(one.id,),
            )


def step(steps: Sequence[int]) -> int:
    """Choose one of the steps that a run kept, at first the last; return it."""
    kept = tuple(steps)
    parameter = SavedStep("step", steps=kept, key=STEP)
    with beside("step"):
        if len(kept) == 1:  # what was chosen on another page stays for the next
            only = replace(parameter, key=f"{STEP}-of-{state.page()}")
            view.warn(view.read_query(only))
            view.clear_query([only])
            st.caption(_("step {step}", step=f"{kept[0]:,}"), width="content")
            return kept[0]
        st.session_state[STEP] = parameter.nearest(st.session_state.get(STEP, NEWEST))
        look = {"label_visibility": "collapsed", "width": 180}
        chosen = view.one(view.saved_step(N_("Step"), kept, look=look), "step", "head")
    return kept[-1] if chosen == NEWEST else int(chosen)


def go_to(step: int, steps: Sequence[int]) -> None:
    """Show another step, from a callback; the last one means the newest, whichever that will be."""
    st.session_state[STEP] = NEWEST if step == steps[-1] else step


def has_moved(step: int, steps: Sequence[int]) -> bool:
    """Return whether another step was chosen since, in a part that is drawn by itself."""
    now = st.session_state.get(STEP, NEWEST)
    return len(steps) > 1 and SavedStep("step", steps=tuple(steps)).nearest(step) != now


def example(
    run: Run,
    items: Sequence[Mapping[str, Any]],
    images: npt.NDArray[Any] | None = None,
    *,
    has_own: bool = False,
) -> int | None:
    """Choose one of the run's examples, from 0; None is one of the visitor's own.

    images: of the examples, which are then chosen by picture. has_own: the page asks for one's own.
    """
    names = {
        str(number): example_name(run.experiment, item, number)
        for number, item in enumerate(items, 1)
    }
    if has_own:
        names[OWN] = N_("Your own")
    look = {"label_visibility": "collapsed", "width": 300}
    field = view.choice(N_("Example"), names, "1", is_list=True, look=look)
    with beside("example"):
        chosen = (
            _picture(names, images) if images is not None else view.one(field, "example", "head")
        )
    return None if chosen == OWN else int(chosen) - 1


def _picture(names: Mapping[str, str], images: npt.NDArray[Any]) -> str:
    """Choose an example by its picture, or one's own; return its name."""
    chosen = str(view.one(view.held(named("", names, first="1")), "example", "head"))

    def pick(name: str) -> None:
        view.put("head", example=name)

    titles = [title for name, title in names.items() if name != OWN]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        thumbnails(
            [Thumbnail(*each) for each in zip(images, titles, strict=False)],
            chosen=None if chosen == OWN else int(chosen) - 1,
            label=_("Example"),
            on_pick=lambda index: pick(str(index + 1)),
            key="head-pictures",
        )
        if OWN in names:
            st.button(
                _("Your own"),
                type="primary" if chosen == OWN else "secondary",
                key="head-own",
                on_click=pick,
                args=(OWN,),
            )
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A run at a step, of those that it kept, and its example, from 0; None where it has none."""

    run: Run
    step: int
    steps: tuple[int, ...]
    example: int | None

    @property
    def item(self) -> Mapping[str, Any]:
        """The example as in a probe; empty where there is none."""
        return {} if self.example is None else self.run.probe().items[self.example]


def moment(run: Run) -> Moment | None:
    """Choose a step whose weights were saved, and an example; None of a run without weights."""
    try:
        steps = steps_of(run)
    except ValueError:
        return None
    chosen, number = step(steps), None
    with suppress(ValueError):  # no probe yet
        probe = run.probe()
        number = example(run, probe.items, probe.images)
    return Moment(run, chosen, steps, number)


def draw() -> None:
    """Name the run in sight, where the page has not done so itself; call it after the page.

    That is the current one, else the one that the page shows because none is chosen.
    """
    if _IS_NAMED.get():
        return
    run_id, linked = state.current_run_id(), state.linked_run_id()
    if run_id is None and linked is not None and state.is_default_run(linked):
        run_id = linked
    found = None
    if run_id is not None:
        with suppress(RunNotFound):
            found = runs_access.store().get(run_id)
    _name(found)


def _name(found: Run | None) -> None:
    """Draw the menu of runs and the state of the run, whose page follows what it saves."""
    is_shown = show.head_place() is not None
    with beside("run"):
        if found is not None:
            every = _TICK if found.status.is_active else None
            st.fragment(_run, run_every=every)(found, _kept(found, is_shown), is_shown)
        elif is_shown:
            _menu(_("Choose a run"), None)
    if found is not None and state.page() != "train" and not found.problem:  # whose stage says it
        announce_end(found.id, run_words.ended(found), key="announce-end")
    _IS_NAMED.set(True)


@contextmanager
def beside(part: str = "view") -> Iterator[None]:
    """Draw a part into the head, in its place in the line; what the link has wrong of it below.

    A page draws there which of its views is shown.
    """
    place, places = show.head_place(), _PLACES.get()
    if place is None:
        yield
        return
    if places is None:
        row = place.container(horizontal=True, vertical_alignment="center")
        parts = [row.container(key=f"head-of-{name}", width="content") for name in _PARTS]
        _PLACES.set(places := (*parts, place.container()))
    with places[_PARTS.index(part)], view.warnings_in(places[-1]):
        yield


def _kept(run: Run, is_shown: bool) -> tuple[object, ...]:
    """Return whether a run goes on, and what it has saved: where that is shown the page follows."""
    if run.problem or not run.status.is_active:
        return (False,)
    saved = (run.weight_steps(), run.checkpoint_step, run.snapshot_steps()) if is_shown else ()
    return True, *saved


def _run(run: Run, before: tuple[object, ...], is_shown: bool) -> None:
    if _kept(run, is_shown) != before:
        state.rerun()
    if not is_shown:
        return
    status = run.status
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="current-run"):
        _menu(escape(run.meta.name), run)
        st.markdown(run_words.badge_of(run), width="content")
        if run.problem:
            st.caption(escape(_(run.problem)), width="content")
            return
        words = shown_run.why_shown(run)
        if status.is_active:
            st.progress(status.progress, width=90)
            words = run_words.progress(status)
        if words:
            st.caption(words, width="content")


def _menu(label: str, run: Run | None) -> None:
    """Offer the runs, the page with all of them, and to train what comes with the app oneself."""
    runs = [one for one in visitors.available_runs() if one.problem is None][:_MAX_OFFERED]
    names = {run_id: escape(name) for run_id, name in run_words.unique_names(runs).items()}
    preset = run.meta.preset if run is not None and run.meta.recorded else None
    if preset in PRESETS and not visitors.why_not():
        names[_TRAIN] = _("Train your own ({time})", time=shown_run.preset_time(preset))
    names[_ALL] = _("All runs")
    picked = st.menu_button(
        label, list(names), format_func=names.__getitem__, key="head-run", type="tertiary"
    )
    if picked == _ALL:
        st.switch_page(page_table.path_of("runs"))
    elif picked == _TRAIN and preset is not None:
        run_actions.start_preset(preset)
    elif picked is not None:
        state.set_current_run(picked)
        st.rerun()
