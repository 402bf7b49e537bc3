"""The model as PyTorch prints it, and as one file to download."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show
from pages.ui.settings import names_choice
from pages.ui.settings.model_choice import Chosen
from tfm_core.anatomy.names import Scheme
from tfm_core.facts.parameter_table import named_parameters
from tfm_core.inspect.attention.trained import no_checkpoint
from tfm_core.inspect.source.carried import Carried, carried, command
from tfm_core.inspect.source.file import FORMS, AttentionForm, printed, source_code
from tfm_core.plots.examples.pictures import png
from tfm_core.runs.run import Run

_FORM = "build-attention-form"


def structure(chosen: Chosen, scheme: Scheme) -> None:
    """Show what ``print(model)`` says, when it is asked for."""
    opened = st.expander(
        _("Printed structure: `print(model)`"),
        icon=":material/account_tree:",
        key="build-printed",
        on_change="rerun",
    )
    if opened.open:
        if scheme in ("hugging-face", "transformer-lens"):
            opened.code(named_parameters(chosen.model, chosen.shape, scheme), language=None)
            opened.caption(paragraph("architecture/names-of-tensors"))
            return
        path = chosen.architecture.own_class if scheme == "notebook" else ""
        text = printed(chosen.model, chosen.shape, scheme, path=path)
        opened.code(text, language=None, height=420)
        if path:
            opened.caption(
                _("`print(model.{path})`: the notebook’s class is this part.", path=path)
            )
        many = re.search(r"\(0-(\d+)\): (\d+) x", text)
        if many is not None:
            opened.caption(_("`{folded}`: {n} equal modules.", folded=many[0], n=many[2]))


def view(chosen: Chosen, scheme: Scheme) -> None:
    st.header(_("Code"), anchor=False)
    data = None
    if chosen.run is not None and not chosen.run.experiment.task.is_opened:
        try:
            with st.spinner(_("Reading what the file carries …"), show_time=False):
                data = _carried(chosen.run.id, chosen.run)
        except ValueError as error:
            show.problem(error)
    form = _form(chosen)
    text = source_code(chosen.model, chosen.shape, form=form, data=data, scheme=scheme)
    st.markdown(_words(chosen, data, len(text.splitlines())))
    if scheme in ("hugging-face", "transformer-lens"):
        st.caption(paragraph("architecture/names-in-file", scheme=names_choice.label(scheme)))
    with st.container(horizontal=True):
        st.download_button(
            _("Download model.py"),
            text,
            "model.py",
            "text/x-python",
            icon=":material/download:",
            on_click="ignore",
        )
        if chosen.run is not None and data is not None:
            _more_to_take(chosen.run, data)
    if chosen.run is not None and data is not None:
        has_weights = form == "written" and chosen.model.has_blocks
        _command(chosen.run, data, has_weights=has_weights)
    whole = st.expander(  # rendered when open: highlighting takes the browser a while
        _("The whole file"),  # one label for all: another would close it
        icon=":material/code:",
        key="build-code",
        on_change="rerun",
    )
    if whole.open:
        whole.code(text, language="python")


def _form(chosen: Chosen) -> AttentionForm:
    """Ask how attention is written; a recurrent model has no fused kernel."""
    if not chosen.model.has_blocks:
        return "written"
    labels = {"written": _("Written out"), "fused": _("Fused kernel")}
    picked: AttentionForm | None = st.segmented_control(
        _("Attention"),
        FORMS,
        format_func=labels.__getitem__,
        default="written",
        key=_FORM,
        persist_state="session",
        help=paragraph("architecture/attention-form"),
    )
    return picked or "written"


def _words(chosen: Chosen, data: Carried | None, n_lines: int) -> str:
    words = [_("One file of {n} lines; it needs torch alone.", n=n_lines)]
    if chosen.experiment is not None and chosen.experiment.task.is_opened:
        words.append(paragraph("architecture/no-file"))
    elif data is None and chosen.experiment is not None:  # a published model has no run here
        words.append(_("With a trained run chosen, it also answers."))
    elif data is not None and data.mean:
        words.append(_("It carries the run's pixel statistics; picture files need Pillow."))
    elif data is not None:
        words.append(_("It carries the run's vocabulary and tokeniser."))
    return " ".join(words)


@st.cache_data(show_spinner=False, max_entries=16)
def _carried(run_id: str, _run: Run) -> Carried:
    return carried(_run.experiment)


def _checkpoint(run: Run) -> Path:
    return run.folder.absolute() / "checkpoints" / "last" / "checkpoint.safetensors"


def _more_to_take(run: Run, data: Carried) -> None:
    if run.has_checkpoint:
        st.download_button(
            _("Weights ({size})", size=show.size(_checkpoint(run).stat().st_size)),
            _checkpoint(run).read_bytes,
            "checkpoint.safetensors",
            "application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
        )
    picture = _picture(run) if data.mean else None
    if picture is not None:
        st.download_button(
            _("A picture to try"),
            picture,
            "picture.png",
            "image/png",
            icon=":material/image:",
            on_click="ignore",
        )


def _picture(run: Run) -> bytes | None:
    """Return an unseen picture of the run as a file; None where it kept none."""
    try:
        images = run.probe().images
    except ValueError:
        return None
    if images is None or not len(images):
        return None
    pixels = images[0]  # (C, height, width)
    return png(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))


def _command(run: Run, data: Carried, *, has_weights: bool) -> None:
    """Show the command that uses the weights, and the same in Python.

    has_weights: whether the file has a function that shows its attention.
    """
    path = _checkpoint(run)
    if not run.has_checkpoint:
        st.caption(_(no_checkpoint(run)))
        return
    tried = "picture.png" if data.mean else data.example
    st.markdown(_("**With this run's weights** it answers by itself:"))
    file = path.as_posix()  # on Windows too: Python reads it, and no shell takes it apart
    st.code(command(data, file), language="bash", wrap_lines=True)
    attention_lines = (
        "\nattention_weights(model)  # of every layer, from the last pass" if has_weights else ""
    )
    st.code(
        f"from model import Model, {'attention_weights, ' if has_weights else ''}load\n\n"
        "model = Model()\n"
        f"model.load_state_dict(load({file!r}))\n"
        f"print(model.{data.verb}({tried!r})){attention_lines}",
        language="python",
        wrap_lines=True,
    )
