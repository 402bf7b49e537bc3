"""Reading: encoder-only models on sentences, gaps and patches."""

from __future__ import annotations

import streamlit as st

from pages.encoders import blanks, sentiment
from pages.encoders import run as encoders_run
from pages.encoders.run import VIEW
from pages.i18n import _, content, paragraph
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.runs import run_actions
from tfm_core.inspect.attention import token_roles
from tfm_core.inspect.attention.token_roles import CLS, MEAN, PATCH, TokenRoles
from tfm_core.runs.run import Run

WITH_CLS = "recorded-notebook-vit"


def page() -> None:
    show.header("encoders")
    with st.container(horizontal=True, vertical_alignment="center"):
        view = view_link.choice(_("View"), VIEW, is_labelled=False)
        with st.popover(_("How it works"), icon=":material/help:"):
            show.prose(content(f"encoders_{view}"))
    {"sentiment": sentiment.view, "blanks": blanks.view, "patches": patches_view}[view]()


def patches_view() -> None:
    encoders_run.show_with("vit-digits", token_roles.reads_patches, _draw, WITH_CLS)


def _draw(run: Run) -> None:
    try:
        with st.spinner(_("Reading the tokens …")):
            roles = token_roles.token_roles(run)
    except ValueError as error:
        show.problem(error)
        return
    st.markdown(_(roles.conclusion))
    _table(roles)
    st.caption(
        paragraph(
            "encoders/probes", n_fit=roles.n_fit, n_tried=roles.n_tried, n_patches=roles.n_patches
        )
    )
    if roles.note:
        st.caption(_(roles.note))
    if run.experiment.has_cls:
        return
    st.info(_("No CLS token here: the head reads the patch mean."), icon=":material/info:")
    if st.button(_("Train it with a CLS token"), icon=":material/play_arrow:", key="encoders-twin"):
        model = run.experiment.model.model_dump() | {"pooling": "cls"}
        name = _("{name}, with CLS", name=run.meta.name)
        twin = run_actions.start(run.experiment.replace(model=model), name=name)
        if twin is not None:
            state.set_current_run(twin.id)
            st.rerun()


def _table(roles: TokenRoles) -> None:
    names = {CLS: _("CLS token"), MEAN: _("mean of patches"), PATCH: _("one patch")}
    shown = [name for name in names if name in roles.digit]
    stands = {
        CLS: _("one learned vector, no part of the picture"),
        MEAN: _("the whole picture, all patches equally"),
        PATCH: _("its own pixels and position"),
    }
    rows = [(_("stands for"), *(stands[name] for name in shown))]
    for depth in range(len(roles.digit[MEAN])):
        where = _("digit, after layer {n}", n=depth) if depth else _("digit, before layer 1")
        rows.append((where, *(show.percent(roles.digit[name][depth]) for name in shown)))
    last = _("ink of a patch, after the last layer")
    rows.append((last, *(show.percent(max(0.0, roles.ink[name])) for name in shown)))
    if roles.looks:
        own, to_cls = (show.percent(share) for share in roles.looks)
        rows.append(
            (
                _("attention in the last layer"),
                _("{share} to itself", share=own),
                "–",
                _("{share} to CLS", share=to_cls),
            )
        )
    show.facts(rows, ["", *(names[name] for name in shown)])


page()
