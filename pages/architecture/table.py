"""The counts of the Parameters page: table, treemap, comparison, weights before and after."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.ui import page_table, recorded, show, state, visitors
from pages.ui.model_choice import Chosen
from pages.ui.typed import escape
from tfm_core.config.shape import TextShape
from tfm_core.facts.compute import macs
from tfm_core.facts.differences import differences
from tfm_core.facts.parameter_table import ParameterRow, most_in, parameter_table
from tfm_core.inspect.attention.weights import Histogram, has_weights, weight_histograms
from tfm_core.plots import costs as plots
from tfm_core.runs.run import Run


def metrics(chosen: Chosen) -> None:
    """Show how many parameters there are, and whether that is the published number."""
    known = chosen.architecture
    total = parameter_table(chosen.model, chosen.shape).total
    words = _("**{n}** parameters, {size} in fp32", n=f"{total:,}", size=show.size(4 * total))
    if known.n_parameters == total and known.source:
        words += _(
            " · :green[:material/check: the published count], {source}", source=_(known.source)
        )
    elif known.source:
        words += f" · {_(known.source)}"
    st.markdown(words)
    if known.note:
        st.caption(_(known.note))


def compare(chosen: Chosen, other: Chosen) -> None:
    """Show two models side by side, and their differences in words."""
    with st.container(border=True):
        for column, one in zip(st.columns(2), (chosen, other), strict=True):
            known = one.architecture
            work = macs(one.model, one.shape, src_len=known.src_len, tgt_len=known.tgt_len)
            with column:
                st.markdown(f"**{escape(_(one.label))}**")
                st.metric(_("Parameters"), f"{parameter_table(one.model, one.shape).total:,}")
                st.metric(_example(one), show.count(sum(work.values())) + " MAC")
        changes = differences(chosen.architecture, other.architecture)
        if changes:
            st.markdown("\n".join(f"- {_(sentence)}" for sentence in changes))
        else:
            st.caption(_("Both are the same model."))


def _example(one: Chosen) -> str:
    """Say what an example is that the arithmetic is counted for."""
    src, tgt = one.architecture.src_len, one.architecture.tgt_len
    if not isinstance(one.shape, TextShape):
        return _("One picture") if not tgt else _("One picture and {n} words", n=tgt)
    if src and tgt:
        return _("One example of {src} + {tgt} tokens", src=src, tgt=tgt)
    return _("One example of {n} tokens", n=src or tgt)


def table(chosen: Chosen) -> None:
    """Show the per-layer table, searchable and to download, and the treemap."""
    known = parameter_table(chosen.model, chosen.shape)
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
    rows = known.folded if is_folded else known.rows
    matching = [row for row in rows if words.strip().lower() in f"{row.module} {row.kind}".lower()]
    if not matching:
        st.caption(_("No module has “{words}” in its name.", words=words.strip()[:40]))
        return
    frame = _frame(matching)
    order = ["parameters", "share", "module", "formula", "shape"]  # a phone shows the first three
    if not frame["trainable"].all():
        order.insert(3, "trainable")
    st.dataframe(
        frame,
        hide_index=True,
        column_order=order,
        column_config={
            "module": st.column_config.TextColumn(_("Module"), width=338),
            "shape": st.column_config.TextColumn(_("Shape"), width=198),
            "parameters": st.column_config.NumberColumn(
                _("Parameters"), format="localized", width=100
            ),
            "formula": st.column_config.TextColumn(_("Worked out"), width=218),
            "share": st.column_config.ProgressColumn(
                _("Share"), format="percent", min_value=0, max_value=1, width=112
            ),
            "trainable": st.column_config.CheckboxColumn(_("Trainable"), width=80),
        },
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            _(
                "Shown: **{n}** of {total} parameters",
                n=f"{sum(row.n_parameters for row in matching):,}",
                total=f"{known.total:,}",
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
        plots.treemap(known.folded, known.total, state.theme()),
        _("Areas are parameters. {most} In wide models the feed-forward layers hold "
          "most; in small ones with many words, the embeddings. Click an area to look "
          "inside.",
            most=_(most_in(known.folded))
        ),
        key="parameters-treemap",
    )  # fmt: skip


def _frame(rows: list[ParameterRow]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "module": [row.module or "cls" for row in rows],
            "kind": [row.kind for row in rows],
            "shape": [row.shape for row in rows],
            "parameters": [row.n_parameters for row in rows],
            "formula": [
                _("0, tied to {module}", module=row.tied_to) if row.tied_to else row.formula
                for row in rows
            ],
            "share": [row.share for row in rows],
            "trainable": [row.is_trainable for row in rows],
            "tied to": [row.tied_to for row in rows],
        }
    )


def weights(chosen: Chosen) -> None:
    """Show the weights of a run before and after its training."""
    run = chosen.run
    if run is None:
        run = _run_with_weights(chosen)
        if run is None:
            st.info(_("Only a run has weights to show. Choose one above, or train one."))
            st.page_link(
                page_table.path_of("runs"), label=_("See all runs"), icon=":material/list:"
            )
            return
        words = _("The model above has no trained weights, so these are those of **{name}**.")
        st.caption(f"{recorded.badge(run)} {words.format(name=escape(run.meta.name))}".strip())
    if not has_weights(run):
        st.info(_("This run has saved no weights yet; they are saved while it trains."))
        return
    try:
        histograms = _histograms(run.id, run.status.step, run)
    except ValueError as error:
        show.problem(error)
        return
    name = st.selectbox(_("Which weights"), list(histograms), key="parameters-weights")
    one = histograms[name]
    show.figure(
        plots.histograms(
            {"before": (one.edges, one.before), "after": (one.edges, one.after)}, name
        ),
        _(
            "Look for weights that have left their initial distribution: training moved "
            "them. {words}",
            words=_(one.words),
        ),
        key="parameters-histogram",
    )


def _run_with_weights(chosen: Chosen) -> Run | None:
    """Return a run to show for a model without one: of the same family where there is any."""
    able = [run for run in visitors.at_hand() if run.problem is None and has_weights(run)]
    alike = [run for run in able if run.experiment.model.family == chosen.model.family]
    return next(iter([*alike, *able]), None)


@st.cache_data(show_spinner=False, max_entries=8)
def _histograms(run_id: str, step: int, _run: Run) -> dict[str, Histogram]:
    return weight_histograms(_run)
