"""Use it and break it: the article on what a knock-out and a map prove, and where a model fails."""

from __future__ import annotations

from concurrent.futures import CancelledError
from dataclasses import replace

import streamlit as st

from pages.app import article, show, state
from pages.app.article import Figures, Made
from pages.app.runs import shown_run
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.inspect.answers import evaluate
from tfm_core.inspect.attention.maps import map_view
from tfm_core.inspect.attention.trained import steps_of
from tfm_core.inspect.errors import GROUPINGS
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Score, example_without
from tfm_core.inspect.knockouts.parts import (
    Part,
    first_to_go,
    heads_of,
    kind_of_attention,
    name_of,
    telling,
)
from tfm_core.plots.examples import by_group
from tfm_core.plots.heads.attention import head_map
from tfm_core.runs.run import Run

NEEDS = replace(
    shown_run.MODELS,
    what=N_("a model with attention that reads a text and writes another"),
    fits=lambda experiment: experiment.task.has_source and bool(heads_of(experiment)),
)
_KINDS = "kind"
"""The groups of tokens in the chart of failures."""


def _run() -> Run:
    """Return the run in sight, or one that fits in its place. Raises ValueError without any."""
    run = shown_run.run_to_show(NEEDS)
    if run is None or run.problem or not (NEEDS.fits(run.experiment) and NEEDS.is_ready(run)):
        run = next(iter(shown_run.fitting(NEEDS)), None)
    if run is None:
        raise ValueError(N_("There is no trained translator yet: train one."))
    return run


def _scored(run: Run, *off: Part, how: measure.Replacement = "zero") -> Score:
    return measure.score_without(run, off, how, measure.default_examples(run))


def _right(score: Score) -> float:
    """Return the share of whole answers that are right, of tokens where there is one token each."""
    return score.accuracy if score.exact is None else score.exact


def _of(run: Run, score: Score) -> None:
    name = escape(run.meta.name)
    if score.exact is None:
        st.caption(_("{run}: share of right answers on {n} unseen examples.", run=name, n=score.n))
    else:
        st.caption(
            _("{run}: share of fully right answers on {n} unseen examples.", run=name, n=score.n)
        )


def without(_made: Made) -> None:
    """Ask which part is needed most, then switch one off."""
    run = _run()
    parts = {part.code: part for part in telling(run.experiment)}
    scores = {code: _scored(run, part) for code, part in parts.items()}
    losses: dict[str, float] = {name_of(parts[code]): score.loss for code, score in scores.items()}
    if not article.guess(measure.about_costliest(losses), "costliest", of=run.id):
        return
    code = st.selectbox(
        _("Part to switch off"),
        list(parts),
        format_func=lambda code: _(name_of(parts[code])),
        key=f"use-part-{run.id}",
    )
    part, whole = parts[code or next(iter(parts))], _scored(run)
    with st.container(horizontal=True, gap="medium"):
        for label, score in ((_("Everything on"), whole), (_("Without it"), scores[part.code])):
            st.metric(label, show.percent(_right(score)), width="content")
    before, after = (
        example_without(run, 0, off, "zero", measure.default_examples(run)) for off in ((), (part,))
    )
    lines = {_("Source"): str(before.item.get("src_text", ""))}
    written = before.answer_text or "–", after.answer_text or "–"
    lines |= {_("Everything on"): written[0], _("Without it"): written[1]}
    rows = [f":grey[{who}] **{escape(text)}**" for who, text in lines.items()]
    st.markdown("  \n".join(rows))
    _of(run, whole)
    show.link("knockouts", _("Switch off any part"), {"run": run.id, "off": part.code})


def attention(_made: Made) -> None:
    """Show a head's map, and what is lost without the head and without its map."""
    run = _run()
    crossing = first_to_go(run.experiment).sublayer
    heads = [head for head in heads_of(run.experiment) if head.sublayer == crossing]
    number = st.selectbox(
        _("Head"),
        range(len(heads)),
        index=len(heads) - 1,
        format_func=lambda number: _(name_of(heads[number])),
        key=f"use-head-{run.id}-{len(heads)}",
    )
    head = heads[number]
    kind = kind_of_attention(run.experiment, head)
    example = example_without(run, 0, (), "zero", measure.default_examples(run))
    shown = map_view(run.experiment, example, kind=kind, layer=head.layer, head=head.head, say=_)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        words = _("Where it looks, in the first example.")
        show.figure(head_map(shown), words, key="use-map")
    with right:
        for label, score in {
            _("With its own map"): _scored(run),
            _("Looking at all tokens alike"): _scored(run, head, how="even"),
            _("Without the head"): _scored(run, head),
        }.items():
            st.metric(label, show.percent(_right(score)))
        _of(run, score)
    layer, at = str((head.layer or 0) + 1), str((head.head or 0) + 1)
    query = {"run": run.id, "kind": kind, "layer": layer, "head": at}
    show.link("attention", _("Every head of this model"), query)


def failures(_made: Made) -> None:
    """Show which kinds of tokens a model got wrong at a step of its training."""
    run = _run()
    steps = steps_of(run)
    step = steps[-1]
    if len(steps) > 1:
        step = st.select_slider(
            _("Step"),
            steps,
            value=steps[len(steps) // 4],
            format_func=lambda step: f"{step:,}",
            key=f"use-step-{run.id}-{len(steps)}",
        )
    try:
        given = evaluate(run, step).future.result()
    except CancelledError:  # on another page of this visitor
        state.rerun()
    way = GROUPINGS[_KINDS]
    counted = way.groups(given, run.experiment)
    if counted.empty:
        raise ValueError(N_("The tokens of this task have no kinds."))
    words = paragraph("use/kinds", run=escape(run.meta.name), step=step, n=given.n_examples)
    show.figure(by_group(counted, _(way.label)), words, key="use-failures")
    show.link("mistakes", _("Every mistake of this model"), {"run": run.id, "step": str(step)})


FIGURES: Figures = {"without": without, "attention": attention, "failures": failures}
GUESSES = ("costliest",)
"""The question that a figure asks before it shows the answer."""

if __name__ == "__main__":
    article.draw("use", FIGURES)
