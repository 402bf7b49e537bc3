"""The parts of the Build page: settings, diagram, one block close up, the whole file."""

from __future__ import annotations

import streamlit as st

from pages.ui import controls, drafts, show, state
from pages.ui.fields import settings_of
from pages.ui.model_choice import Chosen
from pages.ui.words import _
from tfm_core.inspect import source_code as source
from tfm_core.inspect.compute import layers, macs
from tfm_core.inspect.diagram import MOST_UNFOLDED, Look
from tfm_core.inspect.equations import equations
from tfm_core.plots.palette import INKS, LINES

FILLS = {
    "light": {
        "data": "#fbfaf7", "embedding": "#f6e3c3", "attention": "#cfe2f3", "cross": "#ecd5e4",
        "feed-forward": "#cfe9e1", "norm": "#eceae3", "output": "#ece5c4", "sum": "#fbfaf7",
        "encoder": "#eef4f8", "decoder": "#f9efe8",
    },
    "dark": {
        "data": "#14171c", "embedding": "#4d3a17", "attention": "#1d3d5a", "cross": "#4a2d40",
        "feed-forward": "#17443a", "norm": "#2c323b", "output": "#453e1a", "sum": "#14171c",
        "encoder": "#182029", "decoder": "#241c18",
    },
}  # fmt: skip
PARTS = {
    "embedding": _("Embedding"),
    "encoder": _("Encoder"),
    "attention": _("Attention"),
    "decoder": _("Decoder"),
    "feed-forward": _("Feed-forward"),
    "block": _("Block"),
    "stack": _("Stack and norm"),
    "model": _("Whole model"),
}
_MODULES = {  # part -> what its modules' names hold
    "embedding": ("embedding", "positions", "stem", "segments"),
    "encoder": ("encoder.",),
    "attention": ("attention.in_projection", "attention.out_projection", "attention.score"),
    "decoder": ("decoder.steps", "bridge"),
    "feed-forward": ("feed_forward.",),
    "block": (".layers.",),
    "stack": ("norm",),
    "model": ("",),
}


def facts(chosen: Chosen) -> None:
    """Show the size of the model in a few numbers."""
    from tfm_core.inspect.parameter_table import parameter_table

    known = chosen.architecture
    total = parameter_table(chosen.model, chosen.shape).total
    work = sum(
        macs(chosen.model, chosen.shape, src_len=known.src_len, tgt_len=known.tgt_len).values()
    )
    words = _("**{n}** parameters · **{macs}** multiply-accumulates for one full example").format(
        n=f"{total:,}", macs=show.count(work)
    )
    if known.n_parameters == total and known.source:
        words += _(" · :green[:material/check: the published count], {source}").format(
            source=known.source
        )
    elif known.source:
        words += f" · {known.source}"
    st.markdown(words)


def editor() -> None:
    """Draw the architecture's settings; what does not fit together stands beside its control."""
    with st.expander(_("Change the model"), icon=":material/tune:", expanded=False):
        first, second = st.columns([3, 2])
        with first:
            controls.family()
        with second:
            controls.task()
        draft = state.draft()
        checked = drafts.check(draft)
        for sentence in (*checked.at("task.name"), *checked.at("model.family"), *checked.at("")):
            controls.complaint(sentence)
        found = settings_of(drafts.family_of(draft), drafts.task_of(draft))
        controls.group(_("Architecture"), [s for s in found if s.section == "model"], checked)


def diagram(chosen: Chosen) -> None:
    """Draw the diagram, its equal blocks folded or not."""
    from tfm_core.inspect import diagram as drawing

    n = max(layers(chosen.model))
    is_unfolded = False
    if n > 1:
        is_unfolded = st.toggle(
            _("Draw every block"),
            key="build-unfolded",
            disabled=n > MOST_UNFOLDED,
            persist_state="session",
            help=_("Equal blocks are drawn once; up to {n} can be drawn one by one.").format(
                n=MOST_UNFOLDED
            ),
        )
    known, theme = chosen.architecture, state.theme()
    dot = drawing.diagram(
        chosen.model,
        chosen.shape,
        Look(INKS[theme], LINES[theme], FILLS[theme]),
        src_len=known.src_len,
        tgt_len=known.tgt_len,
        unfolded=is_unfolded,
    )
    with st.container(horizontal_alignment="center", border=True):
        st.graphviz_chart(dot, width="content")
    if chosen.model.family == "recurrent":
        words = _(
            "B is the batch. Every step of the decoder needs the one before it; the states of the "
            "encoder are read again at each step. Their width is {d} everywhere."
        )
    else:
        words = _(
            "B is the batch. Dashed arrows are residuals: they carry each token past a layer "
            "unchanged. Follow the width, {d}: it never changes inside the stack."
        )
    st.caption(words.format(d=chosen.model.d_model))


def part(chosen: Chosen) -> None:
    """Show one block close up: its equation, its parameters and its lines of code."""
    st.subheader(_("One part close up"), anchor=False)
    parts = source.sections(chosen.model)
    picked = st.segmented_control(
        _("Part"),
        parts,
        format_func=PARTS.__getitem__,
        default="attention",
        key=f"build-part-{len(parts)}",
        label_visibility="collapsed",
        persist_state="session",
    )
    name = picked or "attention"
    known = equations(chosen.model, chosen.shape)
    for key in [name] if name != "stack" else ["norm"]:
        equation = known[key]
        st.markdown(f"**{equation.title}** · {equation.source}")
        st.latex(equation.latex)
    _part_parameters(chosen, name)
    st.code(source.section(chosen.model, chosen.shape, name), language="python")


def _part_parameters(chosen: Chosen, name: str) -> None:
    from tfm_core.inspect.parameter_table import parameter_table

    rows = parameter_table(chosen.model, chosen.shape).folded
    rows = tuple(row for row in rows if any(words in row.module for words in _MODULES[name]))
    lines = [f"- `{row.module or 'cls'}`: {row.formula} = **{row.n_parameters:,}**" for row in rows]
    st.markdown("\n".join(lines))


def code(chosen: Chosen, title: str) -> None:
    """Offer the whole model as one file that runs with torch alone."""
    text = source.source_code(chosen.model, chosen.shape)
    st.subheader(title, anchor=False)
    words = _("One file for exactly this model; it needs torch only. ")
    words += _("`python model.py` builds it; with the path of a run's ")
    st.markdown(words + _("`checkpoints/last/checkpoint.safetensors` it has the run's weights."))
    st.download_button(
        _("Download model.py"), text, "model.py", "text/x-python", icon=":material/download:"
    )
    with st.expander(
        _("{n} lines of PyTorch").format(n=len(text.splitlines())), icon=":material/code:"
    ):
        st.code(text, language="python")
