"""Live predictions of a run on its probe, and one attention map."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from pages.i18n import _
from pages.ui import attended, page_table, show, state
from pages.ui.task_panels import example_name, panels
from tfm_core.config import ImageTaskConfig
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.plots.attention import Floats, head_map
from tfm_core.plots.caption_strip import caption_strip
from tfm_core.plots.language import continuation_rows
from tfm_core.plots.predictions import picture_cards, text_rows
from tfm_core.probe.continuation import is_language
from tfm_core.probe.labels import axes, kind_of, layer_of, modules_by_kind, patches_per_side
from tfm_core.probe.types import Probe, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

_MODULE, _HEAD, _EXAMPLE = "look-module", "look-head", "look-example"
_FIRST_KINDS = {"cross", "picture"}
"""Kinds of attention that are shown first, where a model has one."""


def part(run: Run) -> None:
    """Draw predictions and a map from the newest snapshot, or why there is none yet."""
    steps = run.snapshot_steps()
    st.header(_("What it says"), anchor=False)
    if not steps:
        st.caption(_("The first look inside comes with the first step."))
        return
    try:
        probe = run.probe()
        snapshot = run.snapshot(steps[-1])
        said: str = panels(run.experiment).part("predictions")(run, snapshot.step)
    except ValueError as error:
        show.problem(error)
        return
    words = _("The same unseen examples at every look; this one is from step {step}.")
    st.caption(words.format(step=f"{snapshot.step:,}"))
    st.html(said)
    _attention(run, probe, snapshot)


def texts(run: Run, step: int) -> str:
    """Return HTML: what a model writes, token by token."""
    return _texts(str(run.folder), step)


def captions(run: Run, step: int) -> str:
    """Return HTML: how a model describes pictures."""
    return _captions(str(run.folder), step)


def pictures(run: Run, step: int) -> str:
    """Return HTML: pictures with the likeliest classes. Raises ValueError, in a sentence."""
    names = run.experiment.task_as(ImageTaskConfig).facts.class_names
    return _pictures(str(run.folder), step, names)


def _attention(run: Run, probe: Probe, snapshot: Snapshot) -> None:
    """Draw one head's map and the choice of it."""
    if not snapshot.attention:
        return
    st.header(_("Where it looks"), anchor=False)
    choice, figure = st.columns([1, 3])
    with choice:
        module, head, example = _selectors(run, probe, snapshot)
        st.caption(_(kind_of(run.experiment, module).look_for))
        st.page_link(
            page_table.path_of("attention"),
            label=_("All layers and heads"),
            icon=":material/visibility:",
            query_params={"run": run.id},
        )
    with figure:
        _map(run, probe, snapshot, module, head, example)


def _selectors(run: Run, probe: Probe, snapshot: Snapshot) -> tuple[str, int, int]:
    by_kind = modules_by_kind(run.experiment)
    kinds = sorted(by_kind, key=lambda kind: kind not in _FIRST_KINDS)
    modules = [module for kind in kinds for module in by_kind[kind] if module in snapshot.attention]
    n_heads = snapshot.attention[modules[0]].shape[1]
    _keep(_MODULE, modules)
    _keep(_HEAD, range(n_heads))
    _keep(_EXAMPLE, range(len(probe.attended)))
    module = st.selectbox(
        _("Attention"),
        modules,
        key=_MODULE,
        format_func=lambda name: _("Layer {n}: {kind}").format(
            kind=_(kind_of(run.experiment, name).label), n=layer_of(name) + 1
        ),
        persist_state="session",
    )
    head = st.selectbox(
        _("Head"),
        range(n_heads),
        key=_HEAD,
        format_func=lambda n: _("Head {n} of {all}").format(n=n + 1, all=n_heads),
        persist_state="session",
    )
    example = st.selectbox(
        _("Example"),
        range(len(probe.attended)),
        key=_EXAMPLE,
        format_func=lambda n: example_name(run.experiment, probe.items[n], n + 1, is_short=True),
        persist_state="session",
    )
    attended.say(run, probe)
    return module, head, example


def _map(run: Run, probe: Probe, snapshot: Snapshot, module: str, head: int, n: int) -> None:
    """The one place that asks for an attention figure."""
    try:
        example = example_of(run.experiment, probe, snapshot, n)
        names = axes(run.experiment, example.item, module)
        kind = kind_of(run.experiment, module)
        if kind.name == "picture":
            _words(run, example, example.attention[module][head], f"{module} {n}")
            return
        figure = head_map(
            example.attention[module][head],
            names.query,
            names.key,
            theme=state.theme(),
            may_attend=names.may_attend,
            top=None,
            query_title=_(kind.query),
            key_title=_(kind.key),
        )
    except (ValueError, KeyError, IndexError) as error:
        show.problem(error)
        return
    figure.update_layout(uirevision=f"{module} {n}")
    show.live_figure(
        figure,
        _("Query token down, key token across: a row says where that token looks."),
        key=f"map-{run.id}",
    )


def _words(run: Run, example: Example, weights: Floats, name: str) -> None:
    """Draw what a head of a captioner looks at for each word, over the picture."""
    side = patches_per_side(run.experiment)
    assert example.picture is not None
    figure = caption_strip(
        weights.reshape(len(weights), side, side),
        example.picture,
        [*example.item["tgt"], "<eos>"],
        [*example.item["boxes"], None],
        state.theme(),
    )
    figure.update_layout(uirevision=name)
    words = _("Where it looks for each word. Outlined: the digit that the word names.")
    show.live_figure(figure, words, key=f"words-{run.id}")


def _keep(key: str, options: Iterable[object]) -> None:
    """Fall back to the first option where the remembered one is not there in this run."""
    offered = list(options)
    if st.session_state.get(key) not in offered:
        st.session_state[key] = offered[0]


@st.cache_data(show_spinner=False, max_entries=64)
def _texts(folder: str, step: int) -> str:
    snapshot, items = _run(folder).snapshot(step), _run(folder).probe().items
    if items and is_language(items[0]):
        return continuation_rows(items, snapshot.tokens or [], snapshot.confidence)
    return text_rows(items, snapshot.tokens or [], snapshot.confidence)


@st.cache_data(show_spinner=False, max_entries=64)
def _captions(folder: str, step: int) -> str:
    probe, snapshot = _run(folder).probe(), _run(folder).snapshot(step)
    return text_rows(probe.items, snapshot.tokens or [], snapshot.confidence, probe.images)


@st.cache_data(show_spinner=False, max_entries=64)
def _pictures(folder: str, step: int, class_names: tuple[str, ...]) -> str:
    probe, snapshot = _run(folder).probe(), _run(folder).snapshot(step)
    if probe.images is None or snapshot.probabilities is None:
        raise StudentError(
            "The snapshot of step {step:,} holds no predictions for pictures.", step=step
        )
    labels = [item["label"] for item in probe.items]
    return picture_cards(probe.images, labels, snapshot.probabilities, class_names)


def _run(folder: str) -> Run:
    return Run(Path(folder))
