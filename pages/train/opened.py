"""A model that was trained elsewhere: what it is, and where to look inside."""

from __future__ import annotations

import streamlit as st

from pages.app import show
from pages.app.runs import run_actions, run_words
from pages.app.typed import escape
from pages.i18n import _, ngettext, paragraph
from pages.train import at_work, fine_tune
from tfm_core.choices.config import (
    ForeignModelConfig,
    ForeignTaskConfig,
    ImageTaskConfig,
    OpenedConfig,
    OpenedWordsConfig,
    family_label,
)
from tfm_core.choices.config.pretrained_tasks import WITHOUT_HEAD
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.looking.unseen import sentence_of
from tfm_core.runs import fine_tuning
from tfm_core.runs.run import Run

_PAGES = {
    "decoder-only": ("attention", "try", "knockouts", "walk", "numbers"),
    "encoder-only": ("attention", "walk", "numbers"),
    "encoder-decoder": ("attention", "try", "walk", "knockouts"),
    "vit": ("attention", "walk", "knockouts", "parameters"),
}
"""Pages that show something of each family, the best first."""
_MAX_LABELS = 10


def page(run: Run) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.title(escape(run.meta.name), anchor=False, width="content")
        st.markdown(run_words.badge(run.status), width="content")
        run_actions.link_back(run.id)
    st.markdown(_facts(run))
    has_model = run.experiment.task.has_model
    st.markdown(paragraph("train/opened") if has_model else paragraph("train/look"))
    if has_model:
        _head(run.experiment.task_as(OpenedConfig))
    with st.container(horizontal=True, gap="small"):
        for name in _PAGES[run.experiment.model.family] if has_model else ("attention",):
            show.link(name)
    if has_model:
        if run.experiment.model.family in fine_tuning.KINDS:
            fine_tune.area(run)
        at_work.of_run(run)
    else:
        _modules(run)


def _head(task: OpenedConfig) -> None:
    """Show what the model's head answers, and which heads were not opened."""
    labels = getattr(task, "label_names", ())
    if labels:
        names = ", ".join(labels[:_MAX_LABELS]) + (", …" if len(labels) > _MAX_LABELS else "")
        st.caption(_("Its head labels a text: {names}. Attention shows it.", names=escape(names)))
    if getattr(task, "mask_id", -1) >= 0:
        st.caption(escape(_("Its head guesses the word of [MASK]. Attention shows it.")))
    if task.left_out:
        st.caption(_(WITHOUT_HEAD, parts=escape(task.left_out)))


def _modules(run: Run) -> None:
    """List the modules whose maps are shown, and count the others."""
    model = run.experiment.model_as(ForeignModelConfig)
    task = run.experiment.task_as(ForeignTaskConfig)
    if task.n_left_out:
        left_out = ngettext(
            "{n} map of another shape is not shown.",
            "{n} maps of other shapes are not shown.",
            task.n_left_out,
            n=task.n_left_out,
        )
        st.caption(left_out)
    for text in task.unseen.splitlines():
        st.caption(f":material/visibility_off: {escape(_(sentence_of(text)))}")
    st.code("\n".join(model.modules.values()), language=None)


def _facts(run: Run) -> str:
    """Return a line that describes the model."""
    experiment, model = run.experiment, run.experiment.model
    if isinstance(model, ForeignModelConfig):
        return show.joined(
            f"**{escape(model.class_name)}**",
            _("**{n}** parameters", n=show.count(model.n_parameters)),
            _("**{n}** maps of **{heads}** heads", n=len(model.modules), heads=model.n_heads),
        )
    task = experiment.task_as(OpenedConfig)
    if isinstance(task, OpenedWordsConfig):
        sizes = [_("**{n}** tokens", n=f"{task.n_words:,}")]
    else:
        side, n = experiment.task_as(ImageTaskConfig).image_size, len(experiment.task.class_names)
        sizes = [
            _("pictures of **{side} × {side}** pixels", side=side),
            ngettext("**{n}** class", "**{n}** classes", n, n=f"{n:,}"),
        ]
    total = parameter_table(model, data_shape(experiment)).total
    return show.joined(
        f"**{_(task.label)}**",
        _(family_label(model.family)),
        _("**{n}** parameters", n=show.count(total)),
        _("**{n}** heads a layer", n=model.n_heads),
        _("width **{n}**", n=model.d_model),
        *sizes,
    )
