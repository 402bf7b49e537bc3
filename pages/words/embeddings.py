"""Embeddings of the current run: a one-hot product is a lookup, and words move in training."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.runs import runs_access, shown_run
from pages.ui.typed import escape
from pages.words.link import DIMENSIONS, TABLE
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.facts.storage import MAX_EMBEDDED
from tfm_core.inspect.compare.conclusions import classes_apart
from tfm_core.inspect.positions.tables import cosines
from tfm_core.inspect.text import embeddings
from tfm_core.inspect.text.embeddings import EmbeddingTable, by_class
from tfm_core.plots.texts import embeddings as plots

PRESET = "translate"
FIRST_RECORDED = "recorded-korean"


def view() -> None:
    table = table_to_show()
    if table is None:
        return
    choices = by_class(table.classes)
    picked = st.selectbox(
        _("Word"),
        choices,
        format_func=lambda index: f"{table.tokens[index]} ({table.classes[index]})",
        key=f"words-word-{table.name}-{len(table.tokens)}",
    )
    index = choices[0] if picked is None else int(picked)
    _lookup(table, index)
    _alike(table, index)


def table_to_show() -> EmbeddingTable | None:
    """Return the chosen embedding table, or offer to train a run that has one."""
    run_id = state.current_run_id()
    if run_id is None:
        able = [run for run in visitors.listed() if embeddings.can_show(run) is None]
        run = shown_run.first_to_show(able, FIRST_RECORDED)
    else:
        run = runs_access.store().get(run_id)
    why = _("No run with words yet.") if run is None else _(embeddings.can_show(run))
    if run is None or why:
        words = _("Train one, or open a recorded one.")
        shown_run.preset_buttons(f"{why} {words}", [PRESET], key="words-train", others=_recorded)
        return None
    shown_run.unchosen_caption(run)
    try:
        names = embeddings.names_of(run)
        name = names[0] if names else ""
        if len(names) > 1:
            table_of = replace(TABLE, names=tuple(names), first=name)
            name = view_link.choice(_("Table"), table_of)
        with st.spinner(_("Reading the table …")):
            table = embeddings.table_of(run, name)
    except ValueError as error:
        show.problem(error)
        return None
    st.caption(
        _(
            "{run}, step {step}: {rows} words × {width} numbers.",
            run=escape(run.meta.name),
            rows=len(table.tokens),
            width=table.values.shape[2],
            step=f"{table.steps[-1]:,}",
        )
    )
    return table


def _lookup(table: EmbeddingTable, index: int) -> None:
    last = table.values[-1]
    lookup = embeddings.look_up(last, index)
    show.figure(
        plots.lookup(last, lookup, table.tokens, state.theme()),
        _("One-hot vector times table: one row."),
        key="words-lookup",
    )
    show.prose(
        paragraph(
            "words/lookup",
            n=f"{lookup.n_products:,}",
            id=index,
            difference=lookup.difference,
        )
    )
    show.code(embeddings.look_up)


def _alike(table: EmbeddingTable, index: int) -> None:
    st.header(_("Similar words"), anchor=False)
    order = by_class(table.classes)
    before, after = (
        embeddings.class_likeness(table.values[at], table.classes, len(SPECIALS)) for at in (0, -1)
    )
    after_training = _("After training (step {n})", n=f"{table.steps[-1]:,}")
    words = classes_apart(before, after, table.steps[-1])
    if words is not None:
        st.markdown(_(words))
    for column, at, title in zip(
        st.columns(2), (0, -1), (_("Before training"), after_training), strict=True
    ):
        values = table.values[at]
        with column:
            st.subheader(title, anchor=False)
            st.dataframe(_nearest(table, at, index), hide_index=True, key=f"words-near{at}")
            within, between = embeddings.class_likeness(values, table.classes, len(SPECIALS))
            show.figure(
                plots.likeness(cosines(values), table.tokens, order, state.theme()),
                paragraph("words/likeness", within=within, between=between),
                key=f"words-like{at}",
            )


def _nearest(table: EmbeddingTable, at: int, index: int) -> pd.DataFrame:
    neighbours = embeddings.neighbours(table.values[at], index, skip=len(SPECIALS))
    return pd.DataFrame(
        {
            _("nearest to {word}", word=table.tokens[index]): [
                table.tokens[i] for i, _like in neighbours
            ],
            _("class"): [_(table.classes[i]) for i, _like in neighbours],
            _("cosine"): [round(like, 3) for _i, like in neighbours],
        }
    )


def _recorded() -> None:
    for other in visitors.at_hand():
        if embeddings.can_show(other) is None and other.meta.preset == PRESET:
            st.button(
                _("Open “{name}”", name=escape(other.meta.name)),
                icon=":material/visibility:",
                key="words-open",
                on_click=state.set_current_run,
                args=(other.id,),
            )
            return


def moving() -> None:
    table = table_to_show()
    if table is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        in_space = view_link.choice(_("Dimensions"), DIMENSIONS)
        has_labels = st.toggle(_("Labels"), True, key="words-labels", persist_state="session")
    projection = embeddings.principal(table.values[-1][len(SPECIALS) :])
    if not table.is_whole:
        st.info(
            _(
                "Only the first and last state exist (older run, or above {most} numbers).",
                most=f"{MAX_EMBEDDED:,}",
            ),
            icon=":material/info:",
        )
    name = f"words-moving-{table.name}-{in_space}-{has_labels}"
    show.live_figure(
        plots.projected(table, projection, in_space=in_space == "3", has_labels=bool(has_labels)),
        paragraph(
            "words/moving",
            n=in_space,
            share=show.percent(float(projection.explained[: int(in_space)].sum())),
        ),
        key=name,
    )
    show.code(embeddings.principal)
