"""Build: the picture, equations and code of exactly one model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.model import model_parts
from pages.app.navigation import head
from pages.app.runs.shown_run import MODELS
from pages.app.settings import controls, drafts, model_choice
from pages.app.settings.model_choice import Chosen
from pages.i18n import N_, _, paragraph
from tfm_core.anatomy.names import SCHEME_LABELS, Scheme
from tfm_core.choices.config import built
from tfm_core.choices.variants.forms import RESIDUALS
from tfm_core.facts.compute import macs
from tfm_core.facts.parameter_table import named_parameters, parameter_table
from tfm_core.inspect.attention.trained import no_checkpoint
from tfm_core.plots.png import png
from tfm_core.runs.run import Run
from tfm_core.trace.equations import equations
from tfm_core.trace.parts import OpenPart, code_of, parameters_of
from tfm_core.trace.source.carried import Carried, carried, command
from tfm_core.trace.source.file import AttentionForm, printed, source_code

SCOPE = "build"
MAX_ROWS = 8
_EDITOR = "build-editor"


@dataclass(frozen=True)
class Build:
    """How the model is written."""

    form: str = view.choice(
        N_("Attention"),
        {"written": N_("Written out"), "fused": N_("Fused kernel")},
        help=lambda: paragraph("architecture/attention-form"),
    )


def page() -> None:
    """Choose a model; draw its parts, print it, and write it as one file."""
    show.header("build")
    run = head.run(MODELS, is_needed=False)
    chosen, place, choices = model_choice.line("build", run, is_edited=True)
    with choices, view.warnings_in(place):
        scheme = model_choice.scheme()
    with place:
        _facts(chosen)
    if chosen.name == model_choice.DRAFT:
        _editor(chosen)
    st.fragment(_parts)(chosen, scheme)  # a click on a part draws the part alone
    _structure(chosen, scheme)
    st.header(_("Code"), anchor=False)
    asked = view.ask(Build, SCOPE, hidden=() if chosen.model.has_blocks else ("form",))
    _code(chosen, scheme, cast("AttentionForm", asked.form))


def _facts(chosen: Chosen) -> None:
    architecture = chosen.architecture
    total = parameter_table(chosen.model, chosen.shape).total
    work = macs(
        chosen.model, chosen.shape, src_len=architecture.src_len, tgt_len=architecture.tgt_len
    )
    size = _(
        "**{n}** parameters · {example}: **{macs}** multiply-accumulates",
        n=f"{total:,}",
        macs=show.count(sum(work.values())),
        example=model_choice.example_size(chosen),
    )
    model_choice.published(chosen, size, total)


def _editor(chosen: Chosen) -> None:
    """Draw the architecture's settings, with each problem beside its control."""
    draft = state.current_draft()
    checked = drafts.check(draft)
    if checked.experiment is None:  # show the problems
        st.session_state[_EDITOR] = True
    folded = st.expander(
        _("Change the model"), icon=":material/tune:", key=_EDITOR, on_change="rerun"
    )
    if not folded.open:  # costs as much as the rest of the page
        return
    with folded:
        controls.kinds(checked)
        settings = [element for element in checked.settings.values() if element.section == "model"]
        controls.group(_("Architecture"), settings, checked)
        if chosen.by_task is not None:
            model_choice.sizes_editor(chosen.by_task, chosen.problem)


def _parts(chosen: Chosen, scheme: Scheme) -> None:
    drawn = st.container()
    left, right = st.columns(2, gap="medium")
    with left:
        part = model_parts.open_part(chosen.architecture, drawn, key="build")
        _close_up(chosen, part, scheme)
    with right:
        st.header(_("Its code"), anchor=False)
        code = code_of(part, chosen.model, chosen.shape)
        st.code(code, language="python", height=420, wrap_lines=True)
    drawn.caption(_below(chosen))


def _below(chosen: Chosen) -> str:
    if not chosen.model.has_blocks:
        return paragraph("architecture/picture-recurrent", d=built(chosen.model).d_model)
    residual = RESIDUALS[getattr(chosen.model, "residual", "normal")]
    if not residual.has_sum:
        kind = "no-residuals"
    elif residual.is_normed("self_attention"):
        kind = "residuals-behind-norms"
    else:
        kind = "residual-behind-norm" if residual.normed else "residuals"
    width = _("The width {d} never changes.", d=built(chosen.model).d_model)
    return f"{width} {paragraph(f'architecture/picture-{kind}')}"


def _close_up(chosen: Chosen, part: OpenPart, scheme: Scheme) -> None:
    """Show a part's equations and parameters, and lead to its steps of the walk."""
    st.caption(" · ".join(map(_, part.rows)))
    by_module = equations(chosen.model, chosen.shape)
    for name in part.equations:
        equation = by_module[name]
        st.markdown(f"**{_(equation.title)}** · {_(equation.source)}")
        st.latex(_(equation.latex))
    _parameters(chosen, part, scheme)
    _steps(chosen, part)


def _parameters(chosen: Chosen, part: OpenPart, scheme: Scheme) -> None:
    rows = parameters_of(part, chosen.model, chosen.shape, scheme)
    if not rows:
        st.markdown(_("**No parameters** of its own."))
        return
    total = sum(row.n_parameters for row in rows)
    lines = [_("**{n} parameters**", n=f"{total:,}")]
    if part.n_blocks > 1:
        each = sum(row.n_parameters for row in rows if row.repeats > 1) // part.n_blocks
        lines = [
            _(
                "**{n} parameters** in {blocks} blocks, {each} each",
                n=f"{total:,}",
                blocks=part.n_blocks,
                each=f"{each:,}",
            )
        ]
    for row in rows[:MAX_ROWS]:
        name = f"`{row.module}`" if row.module else f"`{row.our_name}` ({_(model_choice.NO_NAME)})"
        line = f"- {name}: {row.formula} = **{row.n_parameters:,}**"
        tied = _(" (tied to `{name}`)", name=row.tied_to) if row.tied_to else ""
        lines.append(line + tied)
    if len(rows) > MAX_ROWS:
        lines.append(_("- and {n} more, on the Parameters page", n=len(rows) - MAX_ROWS))
    st.markdown("\n".join([lines[0], "", *lines[1:]]))


def _steps(chosen: Chosen, part: OpenPart) -> None:
    from tfm_core.trace.trace import index

    try:
        numbered = index(chosen.model, chosen.shape)
    except ValueError as error:
        st.caption(_(error))
        return
    entries = {name: entry for name, entry in numbered.items() if name in part.steps}
    if not entries:
        return
    link = {"show": chosen.name, "walk-source": "mine"} | (
        {"run": chosen.run.id} if chosen.run else {}
    )
    if part.n_blocks:
        link["block"] = "1"
    if chosen.experiment is None:  # a published model has no numbers here
        st.markdown(_("**Walk through its shapes**"))
    else:
        st.markdown(_("**Walk through its numbers**"))
    with st.container(horizontal=True, gap="xsmall"):
        for name, (number, title) in entries.items():
            show.link(
                "walk", _("Step {n}: {title}", n=number, title=_(title)), {**link, "part": name}
            )


def _structure(chosen: Chosen, scheme: Scheme) -> None:
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
            opened.caption(_("`print(model.{path})` shows the notebook’s class.", path=path))
        many = re.search(r"\(0-(\d+)\): (\d+) x", text)
        if many is not None:
            opened.caption(_("`{folded}` is {n} equal modules.", folded=many[0], n=many[2]))


def _code(chosen: Chosen, scheme: Scheme, form: AttentionForm) -> None:
    data = None
    if chosen.run is not None and chosen.run.experiment.training is not None:
        try:
            with st.spinner(_("Reading the run’s data …"), show_time=False):
                data = _carried(chosen.run.id, chosen.run)
        except ValueError as error:
            show.problem(error)
    text = source_code(chosen.model, chosen.shape, form=form, data=data, scheme=scheme)
    st.markdown(_carries(chosen, data, len(text.splitlines())))
    if scheme in ("hugging-face", "transformer-lens"):
        st.caption(paragraph("architecture/names-in-file", scheme=_(SCHEME_LABELS[scheme])))
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


def _carries(chosen: Chosen, data: Carried | None, n_lines: int) -> str:
    message = [_("One file of {n} lines that needs only torch.", n=n_lines)]
    if chosen.experiment is not None and chosen.experiment.training is None:
        message.append(paragraph("architecture/no-file"))
    elif data is None and chosen.experiment is not None:  # a published model has no run here
        message.append(_("Choose a trained run, and the file answers, too."))
    elif data is not None and data.mean:
        message.append(_("It includes the run's pixel statistics. Picture files need Pillow."))
    elif data is not None:
        message.append(_("It includes the run's vocabulary and tokenizer."))
    return " ".join(message)


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


if __name__ == "__main__":
    page()
