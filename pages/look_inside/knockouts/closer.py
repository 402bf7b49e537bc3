"""Which parts are off, and heads one by one: what each is worth, and another pattern in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show
from pages.app.address import view
from pages.app.address.parameters import InvalidValue, Written
from pages.app.navigation import page_table
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention.map_view import MapView, map_view
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.knockouts import example as patterns
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.causes import can_change
from tfm_core.inspect.knockouts.example import PATTERNS, Floats, example_without
from tfm_core.inspect.knockouts.measure import Replacement
from tfm_core.inspect.knockouts.parts import (
    STACKS,
    SUBLAYERS,
    Part,
    first_to_go,
    head_of,
    heads_of,
    kind_of_attention,
    name_of,
    parts_of,
)
from tfm_core.plots.heads import scores as plots
from tfm_core.plots.heads.attention import head_map
from tfm_core.runs.run import Run

SCOPE = "knockouts"
MAX_EDITED = 50
"""Tokens of a map that is edited cell by cell."""
MAX_ROWS = 8
MAX_BARS = 12
NOTHING = "none"
_TABLE, _REQUESTED = "knockouts-table", "knockouts-requested"
_OFF, _PAST = "knockouts-off", "knockouts-past"
_MAX_PAST = 50
Codes = tuple[str, ...]


class Knocked(NamedTuple):
    """Parts of a run's model that are off, the newest last, and what stands in for them.

    example: of the run, from 0. n: the first validation examples, on which it is measured; 0 where
    none has a known answer.
    """

    run: Run
    off: tuple[Part, ...]
    example: int
    how: Replacement
    n: int

    @property
    def question(self) -> tuple[object, ...]:
        """What a measurement of all heads depends on: another one is made only on request."""
        return self.run.id, checkpoint_mark(self.run), self.how, self.n


def what_is_off(experiment: Experiment) -> Written[Codes]:
    """Return the parts of a model that are off, in the address; at first, one that it misses."""
    codes = [part.code for part in parts_of(experiment)]

    def read(text: str) -> Codes:
        if text == NOTHING:
            return ()
        named = dict.fromkeys(text.split(","))
        found = tuple(code for code in named if code in codes)
        if len(found) < len(named):
            rule = _("parts of this model, such as {part}, or none", part=codes[0])
            raise InvalidValue(rule, found or None)
        return found

    return Written(
        "off",
        reader=read,
        writer=lambda off: ",".join(off) or NOTHING,
        first=(first_to_go(experiment).code,),
        key=_OFF,
        always_in_url=True,
    )


def parts_off(run: Run) -> tuple[Part, ...]:
    """Return the parts of a run that are off; keep those that another run has, too."""
    parts = {part.code: part for part in parts_of(run.experiment)}
    parameter = what_is_off(run.experiment)
    kept: Codes = st.session_state.get(_OFF, ())
    if kept:
        fitting = tuple(code for code in kept if code in parts)
        st.session_state[_OFF] = fitting or parameter.first
    return tuple(parts[code] for code in view.one(view.held(parameter), "off", "knockouts"))


def switch(code: str) -> None:
    now: Codes = st.session_state.get(_OFF, ())
    change(tuple(one for one in now if one != code) if code in now else (*now, code))


def change(off: Codes = ()) -> None:
    past: list[Codes] = st.session_state.get(_PAST, [])
    st.session_state[_PAST] = [*past, st.session_state.get(_OFF, ())][-_MAX_PAST:]
    st.session_state[_OFF] = off


def undo() -> None:
    *st.session_state[_PAST], st.session_state[_OFF] = st.session_state[_PAST]


def can_undo() -> bool:
    return bool(st.session_state.get(_PAST))


def enqueue(*question: object) -> None:
    """Ask for a measurement that takes seconds."""
    st.session_state.setdefault(_REQUESTED, set()).add(question)


def is_requested(*question: object) -> bool:
    return question in st.session_state.get(_REQUESTED, set())


@dataclass(frozen=True)
class Pruning:
    """What is drawn of a model that loses its heads."""

    drawn: str = view.choice(
        N_("What is drawn"),
        {"accuracy": N_("Accuracy"), "loss": N_("Loss")},
        look={"label_visibility": "collapsed"},
    )


def one_head(heads: Mapping[str, Part], first: str) -> Any:
    """Offer heads by their codes in a list."""
    names = {code: name_of(head) for code, head in heads.items()}
    return view.choice(N_("Head"), names, first, is_list=True)


@dataclass(frozen=True)
class Pattern:
    """The head that gets a pattern, and which to begin with."""

    head: str = one_head({}, "")
    pattern: str = view.choice(N_("Pattern"), PATTERNS, "even")


def by_code(run: Run) -> dict[str, Part]:
    """Return the heads of a model by what links call them."""
    return {head.code: head for head in heads_of(run.experiment)}


def measured(asked: Knocked, place: DeltaGenerator) -> pd.DataFrame:
    """Return the importance of each head; show progress in ``place``."""
    n_heads = len(heads_of(asked.run.experiment))
    words = partial(_, N_("Head {done} of {all}, on {n} examples …"), n=asked.n)
    return _last(measure.importances(asked.run, asked.how, asked.n), place, n_heads, words)


def _last(
    measuring: Iterator[int | pd.DataFrame],
    place: DeltaGenerator,
    total: int,
    words: Callable[..., str],
) -> pd.DataFrame:
    """Show how far a measurement is, in words; return the table that it ends with."""
    for done in measuring:
        if isinstance(done, int):
            place.progress(min(1.0, done / total), words(done=done, all=total))
    place.empty()
    assert isinstance(done, pd.DataFrame)
    return done


def table(asked: Knocked, importances: pd.DataFrame) -> None:
    """Show every head in a row, the most important first; the chosen one can be switched."""
    slopes = measure.gradient_importances(asked.run, asked.n)
    steepest = max(slopes.values()) or 1.0
    ordered = importances.sort_values("rise", ascending=False, kind="stable")
    parts: list[Part] = ordered["part"].tolist()
    columns = {
        "stack": [_(STACKS[part.stack]) for part in parts],
        "attention": [_(SUBLAYERS[part.sublayer][1]) for part in parts],
        "layer": [(part.layer or 0) + 1 for part in parts],
        "head": [(part.head or 0) + 1 for part in parts],
        **{name: ordered[name].tolist() for name in ("rise", "loss", "accuracy")},
        "gradient": [slopes[part] / steepest for part in parts],
    }
    number = st.column_config.NumberColumn
    st.dataframe(
        pd.DataFrame(columns),
        key=_TABLE,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        height=min(420, 38 + 35 * len(parts)),
        column_config={
            "stack": _("Stack"),
            "attention": _("Attention"),
            "layer": number(_("Layer"), width="small"),
            "head": number(_("Head"), width="small"),
            "rise": number(
                _("Loss rises by"), format="%.4f", help=_("Below 0, the head does harm.")
            ),
            "loss": number(_("Loss without it"), format="%.4f"),
            "accuracy": number(_("Right without it"), format="percent"),
            "gradient": st.column_config.ProgressColumn(
                _("By its gradient"),
                format="percent",
                min_value=0,
                max_value=1,
                help=paragraph("knockouts/by-gradient"),
            ),
        },
    )
    st.caption(paragraph("knockouts/heads-alone", n=f"{asked.n:,}"))
    chosen = st.session_state[_TABLE].selection.rows
    part = parts[chosen[0] if chosen and chosen[0] < len(parts) else 0]
    name = _(name_of(part))
    is_off = part in asked.off
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Switch on {part}", part=name) if is_off else _("Switch off {part}", part=name),
            icon=":material/power_settings_new:",
            key="knockouts-switch",
            on_click=switch,
            args=(part.code,),
        )
        attention_link(asked.run, part)


def attention_link(run: Run, part: Part) -> None:
    """Link to a head or an attention on the page Attention."""
    kind = kind_of_attention(run.experiment, part)
    if not kind:
        return
    layer, head = (part.layer or 0) + 1, (part.head or 0) + 1
    st.page_link(
        page_table.path_of("attention"),
        label=_("Open in Attention"),
        icon=":material/visibility:",
        query_params={"run": run.id, "kind": kind, "layer": str(layer), "head": str(head)},
    )


def pruning(asked: Knocked) -> None:
    """Show how a model fares while its heads go, the least important first."""
    n_heads = len(heads_of(asked.run.experiment))
    total = measure.n_measurements(n_heads)
    if not is_requested("pruning", *asked.question):
        show.prose(
            paragraph(
                "knockouts/remove-heads",
                orders=measure.RANDOM_ORDERS,
                measurements=n_heads + total,
                n=f"{asked.n:,}",
            )
        )
        st.button(
            _("Remove the heads"),
            type="primary",
            icon=":material/content_cut:",
            key="knockouts-prune",
            on_click=enqueue,
            args=("pruning", *asked.question),
        )
        return
    place = st.empty()
    order = measured(asked, place).sort_values("rise", kind="stable")["part"].tolist()
    words = partial(_, N_("Measurement {done} of {all} …"))
    curves = _last(measure.pruned(asked.run, order, asked.how, asked.n), place, total, words)
    spare, *by_chance = measure.heads_to_spare(curves)
    said = paragraph(
        "knockouts/heads-to-spare",
        n=curves["removed"].max(),
        spare=spare,
        accuracy=show.percent(curves["accuracy"].iloc[0]),
        orders=len(by_chance),
        by_chance="–".join(str(n) for n in dict.fromkeys((min(by_chance), max(by_chance)))),
        examples=f"{curves['n'].iloc[0]:,}",
    )
    figure = plots.pruning_curve(curves, view.ask(Pruning, SCOPE).drawn)
    show.figure(figure, said, key=f"knockouts-pruning-{asked.run.id}")


def pattern(asked: Knocked) -> None:
    """Let the visitor choose a head and its pattern, and show what changes."""
    run, heads = asked.run, by_code(asked.run)
    if not can_change(run):
        st.info(_("This needs a Transformer that answers with words or a class."))
        return
    first = head_of(run.experiment, asked.off).code
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = view.ask(Pattern, SCOPE, head=one_head(heads, first))
    head = heads[chosen.head]
    example = example_without(run, asked.example, (), asked.how, asked.n)
    kind = kind_of_attention(run.experiment, head)
    shown = map_view(run.experiment, example, kind=kind, layer=head.layer, head=head.head, say=_)
    rows = patterns.pattern_of(chosen.pattern, shown.weights, shown.allowed)
    left, right = st.columns(2, gap="medium")
    with left:
        if max(rows.shape) <= MAX_EDITED:
            key = f"knockouts-pattern-{run.id}-{asked.example}-{head.code}-{chosen.pattern}"
            rows = _edited(rows, shown, key)
        else:
            st.caption(_("Cells can be edited up to {n} tokens.", n=MAX_EDITED))
        _answers(patterns.redrawn(run, asked.example, head, rows))
    with right:
        show.figure(
            head_map(replace(shown, weights=rows)),
            _("Rows are queries, columns are keys."),
            key="knockouts-drawn",
        )


def _edited(begun: Floats, shown: MapView, key: str) -> Floats:
    """Let the visitor change cells; return the rows, which sum to 1."""
    columns = [str(n) for n in range(len(shown.key))]
    frame = pd.DataFrame(patterns.cells_of(begun, shown.allowed), columns=columns)
    frame.insert(0, "query", list(shown.query))
    number = st.column_config.NumberColumn
    title = st.column_config.TextColumn(
        _(shown.query_title), disabled=True, pinned=True, width="small"
    )
    keys = {
        column: number(name, format="%.2f", min_value=0, step=0.01, width=76)
        for column, name in zip(columns, shown.key, strict=True)
    }
    edited = st.data_editor(
        frame,
        hide_index=True,
        column_config={"query": title, **keys},
        height=min(410, 38 + 35 * len(frame)),
        key=key,
    )
    st.caption(paragraph("knockouts/pattern"))
    numbers = edited[columns].to_numpy(dtype=float, na_value=np.nan)
    return patterns.edited(begun, numbers, shown.allowed, shown.query, shown.key)


def _answers(found: pd.DataFrame) -> None:
    st.markdown(
        _(
            "**{n} of {total} answers change.** At most {share} of the probability moves.",
            n=int((found["before"] != found["after"]).sum()),
            total=len(found),
            share=show.percent(float(found["moved"].max())),
        )
    )
    rows = [
        [
            f"{at + 1} {escape(row.place)}" if row.place else _("the whole input"),
            f"{escape(row.before)} · {show.percent(row.before_share)}",
            f"{escape(row.after)} · {show.percent(row.after_share)}",
        ]
        for at, row in found.nlargest(MAX_ROWS, "moved").sort_index().iterrows()
    ]
    show.facts(rows, [_("Answers at"), _("Own attention"), _("This pattern")])
