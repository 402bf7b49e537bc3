"""Controls: example, training step, kind of attention, colour scale."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import streamlit as st

from pages.attention import selection as chosen
from pages.attention import selection_link
from pages.attention.selection_link import MISTAKES, OWN, Offer, Selection
from pages.components.pickers import Thumbnail, thumbnails
from pages.i18n import _
from pages.ui.fact_line import fact_line
from pages.ui.model.task_panels import example_name
from pages.ui.runs import run_words, shown_run
from pages.ui.settings import glosses
from tfm_core.inspect.attention.head_labels import first_heads
from tfm_core.inspect.errors.validation_errors import has_right_answers
from tfm_core.plots.heads.attention import MANY_KEYS
from tfm_core.probe.labels import KINDS, axes, kinds_of, modules_by_kind
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

MEAN = "mean"
_PATCHES = ("patches", "picture")  # kinds of attention with small weights
FRAME_SECONDS = 0.7  # how long a snapshot stands while the training plays


def offer_of(run: Run, probe: Probe) -> Offer:
    experiment = run.experiment
    modules = modules_by_kind(experiment)
    steps = tuple(run.snapshot_steps())
    if steps and not experiment.task.has_model:  # a look may lack some
        seen = run.snapshot(steps[-1]).attention
        modules = {name: names for name, names in modules.items() if seen.keys() >= {*names}}
    kinds = {name: len(names) for name, names in modules.items()}
    for name in ("cross", "picture"):  # the most telling first
        if name in kinds:
            kinds = {name: kinds.pop(name), **kinds}
    patches: tuple[str, ...] = ()
    if "patches" in modules:
        names = axes(experiment, {}, modules["patches"][0]).query
        patches = (*names, MEAN) if experiment.has_cls else (MEAN, *names)
    return Offer(
        kinds, experiment.model.n_heads, len(probe.attended), steps, patches, first_heads(run)
    )


def scrubber(run: Run, selection: Selection, steps: tuple[int, ...], *, live: bool) -> int:
    """Move through the training; return the step that is shown."""
    step = selection_link.nearest_step(selection.step, steps)
    index = steps.index(step)
    if run.status.state == "opened":
        return step
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _move(run, steps, index, -1, _("Back"), _("Previous snapshot"))
        if len(steps) > 1:
            key = _key("step")
            st.session_state[key] = step
            st.select_slider(
                _("Step of the training"),
                steps,
                format_func=lambda value: f"{value:,}",
                key=key,
                on_change=lambda: _to_step(run, st.session_state[key]),
            )
        else:
            st.markdown(_("Step {step}, the only snapshot", step=f"{step:,}"))
        _move(run, steps, index, 1, _("Next"), _("Next snapshot"))
        if len(steps) > 1:
            _play(run, steps)
        if live:
            follow(run, selection, step)
    return step


def animation_left(run: Run, selection: Selection, steps: tuple[int, ...], step: int) -> None:
    """Show the step at which the animation stopped, unless the newest is followed."""
    follows = selection.step is None and step == steps[-1]
    _to_step(run, None if follows else step)


def play_on(run: Run, selection: Selection, steps: tuple[int, ...]) -> bool:
    """Show the next snapshot where its time has come; return whether the last one is reached."""
    now = time.monotonic()
    since = chosen.playing_since()
    if since is not None and now - since < FRAME_SECONDS * 0.8:
        return False
    later = [step for step in steps if step > selection_link.nearest_step(selection.step, steps)]
    is_over = len(later) <= 1
    chosen.set_playing(None if is_over else now)
    chosen.choose(run.id, step=later[0] if later else steps[-1])
    return is_over


def kind_picker(run: Run, selection: Selection, offer: Offer) -> None:
    """Choose which attention of the model is shown, where it has several."""
    if len(offer.kinds) > 1:
        names = {name: _(KINDS[name].short) for name in offer.kinds}

        def picked(kind: str) -> None:
            layer, head = offer.first_head(kind)
            chosen.choose(run.id, kind=kind, layer=layer, head=head)

        segments(_("Attention"), names, selection.kind, "kind", picked)


def line(run: Run, probe: Probe, selection: Selection, offer: Offer) -> float | None:
    """Say what is shown, and offer to change it; return the weight of the darkest colour.

    None is the largest weight of each map.
    """
    if probe.images is not None:
        example_picker(run, probe, selection)
    with st.container(width="stretch"):
        facts, choices = fact_line("attention")
    facts.caption(
        shown_run.facts_of(
            run,
            _input(selection),
            _(kinds_of(run.experiment)[selection.kind].label),
        )
    )
    with choices:
        shown_run.unchosen_caption(run)
        source_picker(run, selection)
        if probe.images is None:
            example_picker(run, probe, selection)
        kind_picker(run, selection, offer)
        is_full = _looks(run, probe, selection)
        glosses.switch(run.experiment, key="attention-glosses")
    return 1.0 if is_full else None


def _input(selection: Selection) -> str:
    """Return what is read, in two words."""
    if selection.example is not None:
        return _("example {n}", n=selection.example + 1)
    return _("a mistake") if selection.source == MISTAKES else _("your own")


def _looks(run: Run, probe: Probe, selection: Selection) -> bool:
    """Choose how maps are drawn; return whether the darkest colour is a weight of 1."""
    kind = kinds_of(run.experiment)[selection.kind]
    st.markdown(f"**{_(kind.label)}.** {_(kind.help)}")
    module = modules_by_kind(run.experiment)[selection.kind][0]
    _n_queries, n_keys = axes(run.experiment, probe.items[selection.example or 0], module).shape
    if selection.stretch is not None:
        begin, end = selection.stretch
        n_keys = min(n_keys, end - begin)
    is_full = _full_scale(selection.kind, is_long=n_keys >= MANY_KEYS)
    if kind.written:
        by = selection.rows or ("written" if kind.is_named_by_written else "read")
        segments(
            _("Name rows by"),
            {"written": _("the token written"), "read": _("the token read")},
            by,
            "rows",
            lambda rows: chosen.choose(run.id, rows=rows),
            _("Each row reads one token and writes the next."),
        )
    if selection.kind == "patches":
        segments(
            _("Small maps"),
            {"picture": _("over the picture"), "matrix": _("patch by patch")},
            selection.small,
            "small",
            lambda small: chosen.choose(run.id, small=small),
        )
    run_words.attended_caption(run, probe)
    return is_full


def _full_scale(kind: str, *, is_long: bool) -> bool:
    """Choose what the darkest colour means; return whether it is a weight of 1."""
    is_small = is_long or kind in _PATCHES  # weights
    names = {True: _("0 to 1"), False: _("this map’s maximum")}
    if is_long:
        names[False] = _("this map’s top 1%")
    picked = st.segmented_control(
        _("Colours"),
        list(names),
        format_func=names.__getitem__,
        default=not is_small,
        key=_key(f"scale-{'patches' if is_small else 'text'}"),
        persist_state="session",
        help=_("“0 to 1” compares heads and steps; the other shows small weights."),
    )
    return not is_small if picked is None else picked


def _move(
    run: Run, steps: tuple[int, ...], index: int, by: int, label: str, help_text: str
) -> None:
    to = index + by
    st.button(
        label,
        icon=":material/skip_previous:" if by < 0 else ":material/skip_next:",
        key=_key("previous" if by < 0 else "next"),
        help=help_text,
        disabled=not 0 <= to < len(steps),
        on_click=_to_step,
        args=(run, steps[max(0, min(to, len(steps) - 1))]),
    )


def _play(run: Run, steps: tuple[int, ...]) -> None:
    is_on = chosen.playing_since() is not None

    def turn() -> None:
        chosen.set_playing(None if is_on else time.monotonic())
        if is_on:
            chosen.choose(run.id)  # say in the link where it stopped
        else:
            chosen.choose(run.id, step=steps[0])

    if st.button(
        _("Stop") if is_on else _("Play snapshots"),
        icon=":material/pause:" if is_on else ":material/play_arrow:",
        key=_key("play"),
        help=None if is_on else _("Play all snapshots"),
        on_click=turn,
    ):
        st.rerun()  # the page decides how often it is drawn again


def follow(run: Run, selection: Selection, step: int) -> None:
    key = _key("follow")
    st.session_state[key] = selection.step is None

    def turn() -> None:
        chosen.choose(run.id, step=None if st.session_state[key] else step)

    st.toggle(_("Follow the newest"), key=key, on_change=turn)


def _to_step(run: Run, step: int | None) -> None:
    if chosen.is_own():  # a late value of a slider that is going away
        return
    chosen.set_playing(None)
    chosen.choose(run.id, step=step)


def segments(
    label: str,
    names: dict[str, str],
    value: str | None,
    name: str,
    on_pick: Callable[[Any], None],
    help_text: str | None = None,
    *,
    label_visibility: Literal["visible", "collapsed"] = "visible",
) -> None:
    """Offer a few choices, value -> label; clicking the chosen one again keeps it."""
    key = _key(name)
    st.session_state[key] = value

    def picked() -> None:
        if st.session_state[key] is not None:
            on_pick(st.session_state[key])

    st.segmented_control(
        label,
        list(names),
        format_func=names.__getitem__,
        key=key,
        on_change=picked,
        help=help_text,
        wrap=True,
        label_visibility=label_visibility,
    )


def _key(name: str) -> str:
    return f"attention-{name}"


def source_picker(run: Run, selection: Selection) -> None:
    if not run.experiment.task.has_model:
        return
    names = {"probe": _("Examples"), MISTAKES: _("Mistakes"), OWN: _("Your own")}
    if not has_right_answers(run.experiment.task):
        del names[MISTAKES]  # a text may go on in many ways

    def picked(source: str) -> None:
        chosen.set_playing(None)
        example = 0 if source == "probe" else None
        chosen.choose(run.id, example=example, own=MISTAKES if source == MISTAKES else "")

    segments(
        _("Input"),
        names,
        selection.source,
        "source",
        picked,
        _("Examples and mistakes are unseen in training."),
    )


def example_picker(run: Run, probe: Probe, selection: Selection) -> None:
    """Choose one of the run's examples: a picture by itself, a text by its words."""
    if selection.example is None:
        return
    if probe.images is not None:
        pictures = [
            Thumbnail(image, example_name(run.experiment, item, number))
            for number, (image, item) in enumerate(
                zip(probe.images, probe.attended, strict=False), 1
            )
        ]
        thumbnails(
            pictures,
            chosen=selection.example,
            label=_("Example"),
            on_pick=lambda example: _to_example(run, example),
            key="attention-pictures",
        )
        return
    key = "attention-example"
    st.session_state[key] = selection.example
    st.selectbox(
        _("Example"),
        range(len(probe.attended)),
        format_func=lambda index: example_name(run.experiment, probe.items[index], index + 1),
        key=key,
        on_change=lambda: _to_example(run, st.session_state[key]),
    )


def _to_example(run: Run, example: int) -> None:
    # While the page is drawn with one's own example, the browser still sends the value of the list
    # that is about to go; with whatever is typed meanwhile that would lead back to the examples.
    if not chosen.is_own():
        chosen.choose(run.id, example=example)
