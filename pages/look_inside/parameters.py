"""Parameters: where they are, what they cost, and how two models differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.navigation import head
from pages.app.runs import runs_access
from pages.app.runs.shown_run import MODELS
from pages.app.settings import model_choice
from pages.app.settings.model_choice import Chosen
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext, paragraph
from pages.look_inside import costs
from tfm_core.anatomy.names import SCHEME_LABELS, Scheme
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.facts.compute import macs
from tfm_core.facts.differences import differences
from tfm_core.facts.parameter_table import ParameterRow, most_in, parameter_table
from tfm_core.inspect import feed_forward
from tfm_core.inspect.attention.trained import weight_histograms
from tfm_core.plots.chart import LOOKS, cells, chart, texts_of
from tfm_core.plots.heads.attention import short
from tfm_core.plots.kinds import reference_line
from tfm_core.plots.model.walk import treemap
from tfm_core.plots.palette import COLOURS, GREY, HUES
from tfm_core.plots.training.curves import learning_curve
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent

SCOPE = "parameters"
_TIMES = (
    {"colour": GREY, "dash": "dot", "shape": "hvh", "fill": "tozeroy"},
    {"colour": COLOURS["train"], "shape": "hvh", "fill": "tozeroy"},
)
TABS = {
    "counts": N_("Parameters"),
    "compute": N_("Compute and memory"),
    "weights": N_("Weights"),
    "activation": N_("Activation"),
    "experts": N_("Experts"),
}


def _tab(names: Collection[str]) -> str:
    labels = {name: TABS[name] for name in names}
    made: str = view.choice(N_("What is shown"), labels, look={"label_visibility": "collapsed"})
    return made


@dataclass(frozen=True)
class Parameters:
    """The side of the model that is shown."""

    tab: str = _tab(TABS)


@dataclass(frozen=True)
class Counts:
    """Which modules the table shows."""

    search: str = view.text(
        N_("Search"),
        "",
        100,
        look={
            "icon": ":material/search:",
            "placeholder": N_("attention, norm, embedding …"),
        },
    )
    fold: bool = view.flag(N_("Fold equal blocks"), default=True)


def page() -> None:
    """Choose a model, and one to compare with; show one side of it."""
    show.header("parameters")
    chosen, place, choices = model_choice.line("parameters", head.run(MODELS, is_needed=False))
    with choices, view.warnings_in(place):
        scheme = model_choice.scheme()
        other = model_choice.compared()
    with place:
        _metrics(chosen)
    if other is not None:
        _compare(chosen, other)
    views: dict[str, Callable[[], None]] = {
        "counts": lambda: _table(chosen, scheme),
        "compute": lambda: costs.compute_and_memory(chosen),
        "weights": lambda: _weights(chosen),
        "activation": lambda: _activation(chosen),
    }
    if getattr(chosen.model, "has_experts", False):
        views["experts"] = lambda: _experts(chosen)
    with view.drawing():  # another side has other fields
        views[view.ask(Parameters, SCOPE, tab=_tab(views)).tab]()


def _metrics(chosen: Chosen) -> None:
    counted = parameter_table(chosen.model, chosen.shape)
    values = {
        "n": f"{counted.total:,}",
        "size": show.size(4 * counted.total),
    }
    if counted.active < counted.total:
        size = _(
            "**{n}** parameters, {active} active per token, {size} in fp32",
            active=f"{counted.active:,}",
            **values,
        )
    else:
        size = _("**{n}** parameters, {size} in fp32", **values)
    model_choice.published(chosen, size, counted.total)


def _compare(chosen: Chosen, other: Chosen) -> None:
    with st.container(border=True):
        for column, model in zip(st.columns(2), (chosen, other), strict=True):
            architecture = model.architecture
            work = macs(
                model.model, model.shape, src_len=architecture.src_len, tgt_len=architecture.tgt_len
            )
            with column:
                st.markdown(f"**{escape(_(model.label))}**")
                st.metric(_("Parameters"), f"{parameter_table(model.model, model.shape).total:,}")
                st.metric(model_choice.example_size(model), show.count(sum(work.values())) + " MAC")
        changes = differences(chosen.architecture, other.architecture)
        if changes:
            st.markdown("\n".join(f"- {_(sentence)}" for sentence in changes))
        else:
            st.caption(_("Both are the same model."))


def _table(chosen: Chosen, scheme: Scheme) -> None:
    parameters = parameter_table(chosen.model, chosen.shape, scheme)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        asked = view.ask(Counts, SCOPE)
    words = asked.search.strip()
    rows = parameters.folded if asked.fold else parameters.rows
    n_unnamed = sum(not row.module for row in rows)
    if n_unnamed == len(rows):
        st.caption(paragraph("architecture/names-no-family", scheme=_(SCHEME_LABELS[scheme])))
    elif n_unnamed:
        label = _(SCHEME_LABELS[scheme])
        st.caption(paragraph("architecture/names-missing", scheme=label, n=n_unnamed))
    matching = [
        row for row in rows if words.lower() in f"{row.module} {row.our_name} {row.kind}".lower()
    ]
    if not matching:
        st.caption(_("No module has “{words}” in its name.", words=escape(words[:40])))
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
                _("Module") if scheme == "ours" else _(SCHEME_LABELS[scheme]), width=338
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
        treemap(parameters.folded, parameters.total, state.theme()),
        paragraph("architecture/treemap", most=_(most_in(parameters.folded))),
        key="parameters-treemap",
    )


def _frame(rows: list[ParameterRow]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "module": [row.module or _(model_choice.NO_NAME) for row in rows],
            "here": [row.our_name for row in rows],
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


def _weights(chosen: Chosen) -> None:
    run = chosen.run
    if run is None:
        st.info(_("Choose a run above to see its weights."))
        return
    if not run.has_checkpoint:
        st.info(_("This run has saved no weights yet."))
        return
    try:
        histograms = _histograms(run.id, run.status.step, run)
    except ValueError as error:
        show.problem(error)
        return
    offered = view.choice(N_("Which weights"), {name: name for name in histograms}, is_list=True)
    name = str(view.one(offered, "weights", SCOPE))
    shares, message = histograms[name]
    show.figure(
        chart(
            shares,
            x="weight",
            y={"before": _("before training"), "after": _("after training")},
            looks=_TIMES,
            marked=0,
            labels={"weight": _("weight of {title}", title=name)},
            height=320,
        ),
        _("Look for weights that training moved. {words}", words=_(message)),
        key="parameters-histogram",
    )


@st.cache_data(show_spinner=False, max_entries=8)
def _histograms(run_id: str, step: int, _run: Run) -> dict[str, tuple[pd.DataFrame, str]]:
    return weight_histograms(_run)


def _activation(chosen: Chosen) -> None:
    """Show every activation with its slope, this model's thick, and where its numbers lie."""
    name = getattr(chosen.model, "activation", None)
    if name is None:
        st.info(_("This model has no feed-forward layer, so no activation."))
        return
    label = _(ACTIVATIONS[name].label)
    show.prose(paragraph("architecture/activation", name=label))
    curves = feed_forward.CURVES.table(pd.concat(map(feed_forward.curve, ACTIVATIONS)))
    looks = {
        each: {"name": _curve(each), "colour": HUES[one.colour], "dash": one.dash, "width": 1.5}
        for each, one in ACTIVATIONS.items()
    }
    looks[name] |= {"dash": "solid", "width": 5}
    words = {
        "output": _("This model's curve is thick."),
        "slope": _("The slopes multiply the gradient."),
    }
    for column, (what, caption) in zip(st.columns(2), words.items(), strict=True):
        with column:
            figure = chart(
                curves, x="u", y=what, colour="name", looks=looks, reference={"x": 0}, height=320
            )
            show.figure(figure, caption, key=f"activation-{what}")
    if chosen.run is not None:
        _given(chosen.run, label)
    else:
        st.caption(_("Choose a run to see its inputs."))


def _curve(name: str) -> str:
    activation = ACTIVATIONS[name]
    return (
        _("SiLU, in {name}", name=_(activation.label))
        if activation.is_gated
        else _(activation.label)
    )


def _given(run: Run, label: str) -> None:
    try:
        layers, shares = feed_forward.given(run)
    except ValueError as error:
        st.info(_(error), icon=":material/info:")
        return
    stairs = [{**look, "shape": "hvh"} for look in LOOKS]
    show.figure(
        chart(
            shares,
            x="u",
            y=[*layers["layer"]],
            looks=stairs,
            marked=0,
            reference={"x": 0},
            height=300,
            showlegend=True,
        ),
        _(
            "Inputs of {name} over all {n} examples; the outer bars hold everything beyond.",
            name=label,
            n=len(run.probe().items),
        ),
        key="activation-given",
    )
    show.facts(
        [
            (layer.layer, f"{layer.n:,}", whole_percent(layer.below), f"{layer.slope:.2f}")
            for layer in layers.itertuples()
        ],
        [_("layer"), _("numbers"), _("below 0"), _("mean slope")],
    )


def _experts(chosen: Chosen) -> None:
    """Show the routes of one example, each expert's share over the steps, and their balance."""
    run = chosen.run
    if run is None:
        st.info(_("Choose a run to see where its tokens go."), icon=":material/info:")
        return
    try:
        steps = run.snapshot_steps()
        names = feed_forward.layers(run.snapshot(steps[-1])) if steps else {}
        if not names:
            st.info(_("This run has no snapshot of its experts yet."), icon=":material/info:")
            return
        _routes(run, steps, names)
    except ValueError as error:
        show.problem(error)
        return
    _balance(run)


def _routes(run: Run, steps: list[int], names: Mapping[str, str]) -> None:
    items, images = run.probe().attended, run.probe().images
    step, index = head.step(steps), head.example(run, items, images) or 0
    module = str(view.one(view.choice(N_("Layer"), names, is_list=True), "layer", SCOPE))
    snapshot = run.snapshot(step)
    gates = snapshot.routing[module]
    routed = feed_forward.routed(
        run.experiment, items[index], gates[min(index, len(gates) - 1)], module
    )
    tokens, shares = routed
    numbers = range(1, shares.shape[1] + 1)
    figure = cells(
        shares.T,
        "share",
        (0, 1),
        says=texts_of(
            N_("{token}, expert {n}: {share}"),
            rows={"n": numbers},
            columns={"token": tokens},
            share=[[f"{share:.2f}" for share in row] for row in shares.T.tolist()],
        ),
        height=min(max(130 + 26 * len(numbers), 190), 520),
        x={"title": _("token"), "names": list(map(short, tokens)), "tickangle": -45},
        y={"title": _("expert"), "names": list(map(str, numbers))},
    )
    show.figure(
        figure,
        _("The share of each expert in each token at step {n}.", n=f"{step:,}"),
        key="experts-routes",
    )
    loads, n_tokens = feed_forward.loads(run, module, steps)
    series = {name: _("expert {n}", n=name) for name in loads.columns[1:]}
    _dead([name for name in series if not loads[name][loads["step"] == step].any()], n_tokens)
    even = {"y": 1 / len(series), "words": _("alike")}
    figure = chart(loads, x="step", y=series, reference=even, height=320, showlegend=True)
    reference_line(figure, x=step)
    show.figure(
        figure,
        _("The share of the examples’ tokens that each expert gets during training."),
        key="experts-loads",
    )


def _dead(numbers: list[str], n_tokens: int) -> None:
    """Say which experts no token passes."""
    if not numbers:
        st.caption(_("Every expert gets some of the {n} tokens.", n=f"{n_tokens:,}"))
        return
    message = ngettext(
        "Dead at this step: expert {names} gets none of the {tokens} tokens.",
        "Dead at this step: experts {names} get none of the {tokens} tokens.",
        len(numbers),
        names=", ".join(numbers),
        tokens=f"{n_tokens:,}",
    )
    st.caption(f":orange[:material/warning: {message}]")


def _balance(run: Run) -> None:
    """Show how unequally the batches were spread, step by step."""
    curves = runs_access.curves(run)
    if not np.isfinite(curves.steps["balance"]).any():
        return
    title, steps = _("imbalance of experts"), run.experiment.trained.steps
    figure = learning_curve(curves, "balance", title=title, total_steps=steps)
    reference_line(figure, y=1.0, words=_("alike"), is_below=True)
    weight = getattr(run.experiment.model, "balance_weight", 0.0)
    message = paragraph("architecture/balance", weight=f"{weight:g}")
    show.figure(figure, message, key="experts-balance")


if __name__ == "__main__":
    page()
