"""The counts of the Parameters page: table, treemap, comparison, weights before and after."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.navigation import page_table
from pages.ui.runs import shown_run
from pages.ui.settings import names_choice
from pages.ui.settings.model_choice import Chosen
from pages.ui.typed import escape
from tfm_core.anatomy.names import Scheme
from tfm_core.config.shape import CaptionShape, ImageShape
from tfm_core.facts.architectures import Architecture
from tfm_core.facts.compute import macs
from tfm_core.facts.differences import differences
from tfm_core.facts.parameter_table import ParameterRow, most_in, parameter_table
from tfm_core.inspect.attention.trained import Histogram, weight_histograms
from tfm_core.plots.model import architecture as plots
from tfm_core.runs.run import Run


def metrics(chosen: Chosen) -> None:
    architecture = chosen.architecture
    counted = parameter_table(chosen.model, chosen.shape)
    values = {
        "label": escape(chosen.label),
        "n": f"{counted.total:,}",
        "size": show.size(4 * counted.total),
    }
    if counted.active < counted.total:
        size = _(
            "**{label}** · **{n}** parameters, {active} active per token, {size} in fp32",
            active=f"{counted.active:,}",
            **values,
        )
    else:
        size = _("**{label}** · **{n}** parameters, {size} in fp32", **values)
    published(architecture, size, counted.total)


def published(architecture: Architecture, size: str, total: int) -> None:
    if architecture.n_parameters == total and architecture.source:
        size = _(
            "{size} · :green[:material/check: the published count], {source}",
            size=size,
            source=_(architecture.source),
        )
    elif architecture.source:
        size += f" · {_(architecture.source)}"
    st.markdown(size)
    if architecture.note:
        st.caption(_(architecture.note))


def compare(chosen: Chosen, other: Chosen) -> None:
    with st.container(border=True):
        for column, model in zip(st.columns(2), (chosen, other), strict=True):
            architecture = model.architecture
            work = macs(
                model.model, model.shape, src_len=architecture.src_len, tgt_len=architecture.tgt_len
            )
            with column:
                st.markdown(f"**{escape(_(model.label))}**")
                st.metric(_("Parameters"), f"{parameter_table(model.model, model.shape).total:,}")
                st.metric(example_size(model), show.count(sum(work.values())) + " MAC")
        changes = differences(chosen.architecture, other.architecture)
        if changes:
            st.markdown("\n".join(f"- {_(sentence)}" for sentence in changes))
        else:
            st.caption(_("Both are the same model."))


def example_size(chosen: Chosen) -> str:
    architecture, shape = chosen.architecture, chosen.shape
    if isinstance(shape, ImageShape):
        return _("One picture")
    if isinstance(shape, CaptionShape):
        return _("One picture and {n} tokens", n=architecture.tgt_len)
    if not shape.has_source:
        return _("One example of {n} tokens", n=architecture.tgt_len)
    if shape.is_label or shape.head in ("pooler", "states"):
        return _("One example of {n} tokens", n=architecture.src_len)
    return _(
        "One example of {src} + {tgt} tokens", src=architecture.src_len, tgt=architecture.tgt_len
    )


def table(chosen: Chosen, scheme: Scheme) -> None:
    parameters = parameter_table(chosen.model, chosen.shape, scheme)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input(
            _("Search"),
            key="parameters-search",
            placeholder=_("attention, norm, embedding …"),
            icon=":material/search:",
            persist_state="session",
        )
        is_folded = st.toggle(
            _("Fold equal blocks"), value=True, key="parameters-fold", persist_state="session"
        )
    rows = parameters.folded if is_folded else parameters.rows
    n_unnamed = sum(not row.module for row in rows)
    if n_unnamed == len(rows):
        st.caption(paragraph("architecture/names-no-family", scheme=names_choice.label(scheme)))
    elif n_unnamed:
        label = names_choice.label(scheme)
        st.caption(paragraph("architecture/names-missing", scheme=label, n=n_unnamed))
    matching = [
        row
        for row in rows
        if words.strip().lower() in f"{row.module} {row.here} {row.kind}".lower()
    ]
    if not matching:
        st.caption(_("No module has “{words}” in its name.", words=words.strip()[:40]))
        return
    frame = _frame(matching)
    order = ["parameters", "share", "module", "formula", "shape"]  # a phone shows the first three
    if not frame["trainable"].all():
        order.insert(3, "trainable")
    if scheme != "ours":
        order.insert(3, "here")
    st.dataframe(
        frame,
        hide_index=True,
        column_order=order,
        column_config={
            "module": st.column_config.TextColumn(
                _("Module") if scheme == "ours" else names_choice.label(scheme), width=338
            ),
            "here": st.column_config.TextColumn(_("Here"), width=338),
            "shape": st.column_config.TextColumn(_("Shape"), width=198),
            "parameters": st.column_config.NumberColumn(
                _("Parameters"), format="localized", width=100
            ),
            "formula": st.column_config.TextColumn(_("Worked out"), width=218),
            "share": st.column_config.ProgressColumn(
                _("Share"), format="%.1f%%", min_value=0, max_value=100, width=112
            ),
            "trainable": st.column_config.CheckboxColumn(_("Trainable"), width=80),
        },
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            _(
                "Shown: **{n}** of {total} parameters",
                n=f"{sum(row.n_parameters for row in matching):,}",
                total=f"{parameters.total:,}",
            ),
            width="content",
        )
        st.download_button(
            _("Download CSV"),
            frame.to_csv(index=False),
            "parameters.csv",
            "text/csv",
            icon=":material/download:",
        )
    show.figure(
        plots.treemap(parameters.folded, parameters.total, state.theme()),
        paragraph("architecture/treemap", most=_(most_in(parameters.folded))),
        key="parameters-treemap",
    )


def _frame(rows: list[ParameterRow]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "module": [row.module or _(names_choice.NO_NAME) for row in rows],
            "here": [row.here for row in rows],
            "kind": [row.kind for row in rows],
            "shape": [row.shape for row in rows],
            "parameters": [row.n_parameters for row in rows],
            "formula": [
                _("0, tied to {module}", module=row.tied_to) if row.tied_to else row.formula
                for row in rows
            ],
            "share": [100 * row.share for row in rows],
            "trainable": [row.is_trainable for row in rows],
            "tied to": [row.tied_to for row in rows],
        }
    )


def weights(chosen: Chosen) -> None:
    run = chosen.run
    if run is None:
        able = [run for run in visitors.at_hand() if run.problem is None and run.has_checkpoint]
        alike = [run for run in able if run.experiment.model.family == chosen.model.family]
        run = next(iter([*alike, *able]), None)
        if run is None:
            st.info(_("Choose a run above to see its weights."))
            st.page_link(
                page_table.path_of("runs"), label=_("See all runs"), icon=":material/list:"
            )
            return
        name = escape(run.meta.name)
        words = _("Weights of **{name}**.", name=name)
        st.caption(f"{shown_run.origin_badge(run)} {words}".strip())
    if not run.has_checkpoint:
        st.info(_("This run has saved no weights yet."))
        return
    try:
        histograms = _histograms(run.id, run.status.step, run)
    except ValueError as error:
        show.problem(error)
        return
    name = st.selectbox(_("Which weights"), list(histograms), key="parameters-weights")
    edges, before, after, words = histograms[name]
    show.figure(
        plots.histograms({"before": (edges, before), "after": (edges, after)}, name),
        _("Look for weights that training moved. {words}", words=_(words)),
        key="parameters-histogram",
    )


@st.cache_data(show_spinner=False, max_entries=8)
def _histograms(run_id: str, step: int, _run: Run) -> dict[str, Histogram]:
    return weight_histograms(_run)
