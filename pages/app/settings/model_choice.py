"""Which model the pages on the model show: the draft, a run's, a published or a pasted one.

The address says which: ``show=gpt2-xl``, ``show=run&run=...``, or the settings of the draft. The
draft may have custom vocabularies and lengths, to look at; training uses those of its task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.address.parameters import Choice, InvalidValue, Number, Text, one_of
from pages.app.navigation import page_table
from pages.app.runs import runs_access, shown_run
from pages.app.settings import controls, drafts
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext, paragraph
from tfm_core.anatomy.names import SCHEME_LABELS, Scheme
from tfm_core.choices.config import Experiment, ModelConfig, tasks_for
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.shape import CaptionShape, ImageShape, Shape
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.architectures import (
    ARCHITECTURES,
    Architecture,
    FreeSizes,
    of_experiment,
    offered,
    resized,
    sizes_of,
)
from tfm_core.inspect.notebook import MAX_CHARACTERS, YourModel, your_model
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

MAX_WORDS = 1_000_000
MAX_TOKENS = 8192
_SIZE_LABELS = {
    "src_vocabulary": N_("Source vocabulary (words)"),
    "tgt_vocabulary": N_("Target vocabulary (words)"),
    "src_len": N_("Source length (tokens)"),
    "tgt_len": N_("Target length (tokens)"),
}


def _size(name: str) -> Number:
    most = MAX_WORDS if name.endswith("vocabulary") else MAX_TOKENS
    return Number(name, first=0, key=f"free-{name}", low=0, high=most)


SRC_VOCABULARY, TGT_VOCABULARY = _size("src_vocabulary"), _size("tgt_vocabulary")
SRC_LEN, TGT_LEN = _size("src_len"), _size("tgt_len")
_SIZES = {one.query: one for one in (SRC_VOCABULARY, TGT_VOCABULARY, SRC_LEN, TGT_LEN)}


def sizes_editor(architecture: Architecture, problem: str) -> None:
    """Draw the sizes. architecture: the model with the sizes of its task."""
    names = offered(architecture.shape)
    if not names:
        return
    own = asdict(sizes_of(architecture))
    with st.container(border=True):
        help_text = _("Only for this view; training uses the task’s value.")
        st.header(_("Vocabulary and lengths"), anchor=False, help=help_text)
        for column, name in zip(st.columns(len(names)), names, strict=True):
            parameter = _SIZES[name]
            key = f"setting:{name}"
            st.session_state[key] = st.session_state.get(parameter.key) or own[name]
            with column:
                st.number_input(
                    _(_SIZE_LABELS[name]),
                    1,
                    parameter.high,
                    key=key,
                    on_change=_set_size,
                    args=(name, key, own[name]),
                    help=_("The task has {n}.", n=f"{own[name]:,}"),
                )
        if problem:
            controls.error_text(problem)


def _set_size(name: str, key: str, own: int) -> None:
    picked = int(st.session_state[key])
    st.session_state[_SIZES[name].key] = 0 if picked == own else picked


DRAFT, RUN, NOTEBOOK = "draft", "run", "notebook"
_NAMES = (DRAFT, RUN, NOTEBOOK, *ARCHITECTURES)
_NOTEBOOK_LABEL = N_("Your notebook")
_NOTEBOOK_EXAMPLE = "Encoder(3, 16, 4, 2)"
NOTEBOOK_TEXT = Text("notebook", first=_NOTEBOOK_EXAMPLE, key="notebook-text", most=1_500)
"""Pasted sizes of a model, or a call with them; the link has the sizes that were read from it."""
_LAST_NOTEBOOK = "notebook-last-valid"
_MAX_UNREAD = 40
_RUN_PREFIX = "run:"


@dataclass(frozen=True)
class ModelName(Choice):
    """The name of a model; of a run ``run:`` and its id. current: the id that ``run`` means."""

    current: str = ""

    def parse(self, text: str) -> str:
        """Return the name. Raises InvalidValue, whose rule omits ids of runs."""
        name = _RUN_PREFIX + self.current if text == RUN and self.current else text
        if name not in (*self.names, self.first):
            raise InvalidValue(one_of([n for n in self.names if not n.startswith(_RUN_PREFIX)]))
        return name


SHOW = ModelName("show", names=_NAMES, first=DRAFT, key="model-choice")
VERSUS = ModelName("versus", names=_NAMES, first="", key="model-compare")
_LAST = "model-last-valid"
_MIRRORED = "model-mirrored"
_RUN_SEEN = "model-run-seen"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model to show. experiment: of the draft and a run. run: of a run only.

    A draft with custom sizes is no experiment. by_task: the draft with the sizes of its task;
    problem: why the custom sizes are invalid.
    """

    name: str
    label: str
    architecture: Architecture
    experiment: Experiment | None = None
    run: Run | None = None
    by_task: Architecture | None = None
    problem: str = ""

    @property
    def model(self) -> ModelConfig:
        return self.architecture.model

    @property
    def shape(self) -> Shape:
        return self.architecture.shape


@dataclass(frozen=True, slots=True)
class Example:
    """A model that a page opens with while there is no run."""

    name: str
    label: str
    experiment: Experiment


NAMES = view.choice(
    N_("Names"),
    {str(name): label for name, label in SCHEME_LABELS.items()},
    help=lambda: paragraph("architecture/names"),
)
NO_NAME = N_("no name")


def scheme() -> Scheme:
    """Draw the switch of names: whose words the parts of a model are called by."""
    return cast("Scheme", view.one(NAMES, "names", ""))


def line(
    key: str,
    run: Run | None,
    *,
    is_edited: bool = False,
    is_trained: bool = False,
    example: Example | None = None,
) -> tuple[Chosen, DeltaGenerator, DeltaGenerator]:
    """Draw a line for the model's facts, with the choice behind it, and problems below.

    Returns the model, the place of the facts, and that of more choices. key: begins their keys.
    run: of the head, if there is one.
    """
    facts, choices = show.fact_line(key)
    problems = st.container()
    with choices, view.warnings_in(problems):
        model = chosen(run, is_edited=is_edited, is_trained=is_trained, example=example)
    return model, facts, choices


def chosen(
    run: Run | None,
    *,
    is_edited: bool = False,
    is_trained: bool = False,
    example: Example | None = None,
) -> Chosen:
    """Draw the choice of the model, with the draft's problems below it; return the model.

    The choice is the same on every page, and the link holds it; at first it is ``run``, that of the
    head. While the draft does not fit together, the last one that did is shown. is_edited: the page
    has the settings of the model, and says there what is wrong with them. is_trained: it needs an
    experiment, so the draft has the sizes of its task. example: what it opens with while no run is
    chosen.
    """
    misread = _read_draft()
    others = {} if state.shows_run() else _other_runs()
    own = [] if example is None else [example.name]
    names = [*([RUN] if run is not None else []), *own, DRAFT, *others]
    names += [NOTEBOOK, *ARCHITECTURES]
    seen = st.session_state.get(_RUN_SEEN)
    st.session_state[_RUN_SEEN] = run_id = None if run is None else run.id
    if run_id is not None and run_id != seen and not _asks_for_a_model():
        st.session_state[SHOW.key] = RUN
    missing = _missing() if run is None else None
    first = DRAFT if run is None else RUN
    preset = drafts.preset_values(state.FIRST_PRESET)
    is_untouched = not drafts.differences(state.draft(), preset)
    if example is not None and run is None and is_untouched:
        first = example.name
        visited = f"model-example-{example.name}"
        is_first = visited not in st.session_state
        st.session_state[visited] = True
        picked = st.session_state.get(SHOW.key, DRAFT)
        if is_first and picked == DRAFT and not _asks_for_a_model():
            st.session_state[SHOW.key] = example.name
    unknown = view.read_query(replace(SHOW, names=tuple(names), first=first))
    picked = st.selectbox(
        _("Model"),
        names,
        format_func=lambda name: (
            _(example.label) if example and name == example.name else _label(name, run, others)
        ),
        key=SHOW.key,
        persist_state="session",
        on_change=_take_run,
        help=_(
            "Your configuration, a run, or a published model. "
            "Published models are full size but take no memory."
        ),
    )
    if picked == NOTEBOOK:
        _notebook_field()
    with view.warnings_place():  # exists even when empty: nothing moves when one appears
        for problem in (missing or unknown, *misread):
            view.warn(problem)
        _mirror_choice(picked, run, first)
        if example is not None and picked == example.name:
            one = of_experiment(example.experiment, _(example.label))
            return Chosen(picked, one.label, one, example.experiment)
        if picked == NOTEBOOK:
            one = _notebook_model()
            view.clear_query(_SIZES.values())
            return Chosen(picked, _(one.label), one)
        view.clear_query([NOTEBOOK_TEXT])
        choice = _resolve(picked, run, is_edited=is_edited)
        if is_trained:
            return choice
        if picked != DRAFT:
            view.clear_query(_SIZES.values())
            return choice
        return _draft_with_sizes(choice, is_edited=is_edited)


def _notebook_field() -> None:
    """Draw the field for the text."""
    view.warn(view.read_query(NOTEBOOK_TEXT))
    st.text_area(
        _("Sizes or a call"),
        key=NOTEBOOK_TEXT.key,
        persist_state="session",
        height=120,
        max_chars=MAX_CHARACTERS,
        help=paragraph("architecture/your-notebook"),
    )


def _notebook_model() -> Architecture:
    """Return the model of the text; of the last one that could be read."""
    text = str(st.session_state[NOTEBOOK_TEXT.key])
    try:
        found = your_model(text)
    except ValueError as error:
        show.problem(error)
        text = str(st.session_state.get(_LAST_NOTEBOOK, _NOTEBOOK_EXAMPLE))
        st.caption(_("Showing the last valid model."))
        found = your_model(text)
    st.session_state[_LAST_NOTEBOOK] = text
    view.write_query(
        NOTEBOOK_TEXT, NOTEBOOK_TEXT.first if text == _NOTEBOOK_EXAMPLE else found.sizes
    )
    _notebook_report(found)
    return found.architecture


def _notebook_report(found: YourModel) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="notebook-report"):
        n = found.n_lines - len(found.unread)
        st.markdown(ngettext("{n} line read.", "{n} lines read.", n, n=n), width="content")
        if st.button(
            _("Train a model like this"), icon=":material/model_training:", type="tertiary"
        ):
            model = found.architecture.model
            values = default_sections(model.family, tasks_for(model.family)[0])
            state.set_draft({**values, "model": model.model_dump()})
            st.switch_page(page_table.path_of("train"))
    for sentence in found.assumed:
        st.caption(f":orange[{escape(_(sentence))}]")
    n = len(found.unread)
    if n:
        label = ngettext("{n} line was not understood", "{n} lines were not understood", n, n=n)
        with st.expander(label, icon=":material/help:"):
            rows = [(str(number), text, _(why)) for number, text, why in found.unread[:_MAX_UNREAD]]
            show.facts(rows, [_("line"), _("text"), _("why")])


def _draft_with_sizes(draft: Chosen, *, is_edited: bool) -> Chosen:
    """Return the draft with the sizes of the session or the link, which the link says again."""
    for parameter in _SIZES.values():
        view.warn(view.read_query(parameter))
    sizes = FreeSizes(**{name: st.session_state[size.key] for name, size in _SIZES.items()})
    known, problem = draft.architecture, ""
    for name, parameter in _SIZES.items():
        view.write_query(parameter, getattr(sizes, name) if name in offered(known.shape) else 0)
    new = known
    try:
        new = resized(known, sizes)
    except StudentError as error:
        problem = _(error)
    if problem and not is_edited:
        controls.error_text(problem)
    chosen = replace(draft, by_task=known, problem=problem)
    if new is known:
        return chosen
    return replace(chosen, architecture=new, experiment=None)


def _take_run() -> None:
    picked = str(st.session_state[SHOW.key])
    if picked.startswith(_RUN_PREFIX):
        st.session_state[_RUN_SEEN] = run_id = picked.removeprefix(_RUN_PREFIX)
        state.set_current_run(run_id)
        st.session_state[SHOW.key] = RUN


def _other_runs() -> dict[str, Run]:
    """Return the other runs that can be shown, newest first."""
    current = state.current_run_id()
    return {
        _RUN_PREFIX + run.id: run
        for run in visitors.available_runs()
        if run.id != current and run.problem is None and run.experiment.task.has_model
    }


def _read_draft() -> list[str]:
    """Adopt the configuration of a new link; return its problems."""
    query = drafts.link_settings(view.query())
    if not query or query == st.session_state.get(_MIRRORED):
        return []
    values, sentences = drafts.draft_of_link(query)
    state.set_draft(values, base=drafts.link_base(query))
    if SHOW.query not in view.query():
        st.session_state[SHOW.key] = DRAFT
    return sentences


def _asks_for_a_model() -> bool:
    query = view.query()
    return SHOW.query in query or bool(drafts.link_settings(query))


def _mirror_choice(picked: str, run: Run | None, first: str) -> None:
    """Write the model to the address.

    first: what is shown without a word in the address.
    """
    view.write_query(replace(SHOW, first=first), picked)
    if picked == DRAFT:
        drafts.write_link(state.configuration_query(state.current_draft()))
    else:
        drafts.clear_link()
    st.session_state[_MIRRORED] = drafts.link_settings(view.query())
    if picked == RUN and run is not None:
        state.name_run(run.id)
    elif not state.shows_run():
        state.name_run(None)


def _resolve(name: str, run: Run | None, *, is_edited: bool = False) -> Chosen:
    """Return a model by name. run: what the name ``run`` means."""
    if name in ARCHITECTURES:
        published = ARCHITECTURES[name]
        return Chosen(name, _(published.label), published)
    shown = run if name == RUN else None
    experiment = _draft(is_edited=is_edited) if shown is None else shown.experiment
    label = _label(name, shown, {})
    one = of_experiment(experiment, label)
    return Chosen(name, label, one, experiment, shown)


def _draft(*, is_edited: bool) -> Experiment:
    checked = drafts.check(state.current_draft())
    if checked.experiment is not None:
        st.session_state[_LAST] = checked.experiment
        return checked.experiment
    for problem in checked.problems:
        if not (is_edited and problem.field.startswith("model.")):
            controls.error_text(_(problem.sentence))
    st.caption(_("Showing the last valid configuration."))
    last: Experiment = st.session_state.get(_LAST, PRESETS[state.FIRST_PRESET].experiment)
    return last


def _label(name: str, run: Run | None, others: Mapping[str, Run]) -> str:
    if name == DRAFT:
        return _("Your configuration")
    if name == NOTEBOOK:
        return _(_NOTEBOOK_LABEL)
    if name in ARCHITECTURES:
        return _(ARCHITECTURES[name].label)
    shown = others.get(name, run)
    return _("The run “{name}”", name=shown.meta.name if shown else "")


def _missing() -> str | None:
    """Return why a link to a run's model cannot be followed, or None."""
    if view.query().get(SHOW.query) != RUN:
        return None
    run_id = state.current_run_id()
    why = _("The run in this link is not here.")
    if run_id is not None:
        why = runs_access.store().get(run_id).problem or why
    return _("{why} Showing your configuration.", why=why)


def compared() -> Chosen | None:
    """Draw the choice of a model to compare with; return it, or None."""
    run = shown_run.current_run()
    runs = ({} if run is None else {_RUN_PREFIX + run.id: run}) | _other_runs()
    names = [DRAFT, *runs, *ARCHITECTURES]
    current = "" if run is None else run.id
    unknown = view.read_query(replace(VERSUS, names=tuple(names), current=current))
    picked = st.selectbox(
        _("Compare with"),
        names,
        format_func=lambda name: _label(name, None, runs),
        key=VERSUS.key,
        placeholder=_("Nothing"),
        persist_state="session",
    )
    view.warn(unknown)
    view.write_query(VERSUS, picked or "")
    if picked is None:
        return None
    return _resolve(RUN, runs[picked]) if picked in runs else _resolve(picked, None)


def published(chosen: Chosen, size: str, total: int) -> None:
    """Show the size of a model, its name where the head has another, and where it comes from."""
    architecture = chosen.architecture
    size = show.joined("" if chosen.run else f"**{escape(chosen.label)}**", size)
    if architecture.n_parameters == total and architecture.source:
        size = _(
            "{size} · :green[:material/check: matches the published count], {source}",
            size=size,
            source=_(architecture.source),
        )
    elif architecture.source:
        size += f" · {_(architecture.source)}"
    st.markdown(size)
    if architecture.note:
        st.caption(_(architecture.note))


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
