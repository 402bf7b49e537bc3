"""Translate: a trained model writes token by token, and you can intervene."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, typed
from pages.app.address import view, view_link
from pages.app.address.parameters import Number, Unfit, Written
from pages.app.fact_line import fact_line
from pages.app.model import sentence_field
from pages.app.navigation import head
from pages.app.runs.shown_run import Needs
from pages.app.settings import glosses
from pages.app.typed import escape
from pages.components.writing_desk import DeskView, writing_desk
from pages.i18n import N_, _, paragraph
from pages.try_it import answer
from pages.try_it.answer import BEAM, BESIDE, METHODS, SAMPLE, How
from tfm_core.choices.config import CaptionTaskConfig, CorpusTaskConfig, Experiment
from tfm_core.data.tasks import text_task
from tfm_core.data.text import TextTask
from tfm_core.data.text.glosses import language_of
from tfm_core.inspect.attention.heads import aligning_head
from tfm_core.inspect.attention.trained import steps_of
from tfm_core.inspect.text.surprisal import example_text
from tfm_core.inspect.writing import steps
from tfm_core.inspect.writing.beside import beside_truth, parts_at
from tfm_core.inspect.writing.source import Source, next_words, picture_source, source_of, writes
from tfm_core.inspect.writing.steps import Writing, in_nats
from tfm_core.plots.texts.writing import beside_table
from tfm_core.runs.run import Run

SCOPE = "translate"
MAX_TEXT, MAX_STEPS = 400, 1024
_READ = "translate-read"  # the last text that could be read, and its run
NEEDS = Needs(
    N_("a model that writes"),
    writes,
    first="recorded-korean",
    presets=("translate", "gpt-grammar", "captions"),
)
Forced = tuple[tuple[int, int], ...]
"""Tokens of the reader's in order: position, from 0, and token id."""


def read_forced(text: str) -> Forced:
    """Parse ``3-17,1-9``: positions from 1 and token ids. Raises Unfit."""
    tokens: dict[int, int] = {}
    for part in filter(None, text.split(",")):
        pair = re.fullmatch(r"([0-9]{1,4})-([0-9]{1,6})", part)
        if pair is None or not 1 <= int(pair[1]) <= MAX_STEPS:
            raise Unfit(_("positions and token numbers, such as 3-17,5-9"))
        tokens[int(pair[1]) - 1] = int(pair[2])
    return tuple(tokens.items())


def write_forced(forced: Forced) -> str:
    return ",".join(f"{place + 1}-{id}" for place, id in forced)


FORCED: Written[Forced] = Written("", first=(), reader=read_forced, writer=write_forced)
AT = Number("", first=0, low=0, high=MAX_STEPS)


@dataclass(frozen=True)
class WrittenFrom:
    """What the model writes from: a sentence or a prompt, or a picture."""

    text: str = view.text(N_("Your sentence"), "", MAX_TEXT)
    picture: int = view.number(N_("Test picture"), 1, 50_000, 1, is_typed=True)


@dataclass(frozen=True)
class Intervention:
    """Tokens that the reader puts in, and the step that is shown; 0 is the whole text."""

    forced: tuple[tuple[int, int], ...] = view.held(FORCED)
    at: int = view.held(AT)


def page() -> None:
    show.header("translate")
    run = head.run(NEEDS)
    if run is None:
        return
    above, choices = fact_line("translate")
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    try:
        step = head.step(steps_of(run))
        with view_link.warnings_in(st.container()):
            _write(run, step, above, row, choices)
    except ValueError as error:
        show.problem(error)


def _write(
    run: Run, step: int, above: DeltaGenerator, row: DeltaGenerator, choices: DeltaGenerator
) -> None:
    """Ask what to write from and how, and show what is written.

    row: the place of the method. choices: of what few change.
    """
    with above:
        give = _picture if run.experiment.task.describes_pictures else _text
        source, given = give(run, step, choices)
    with row:
        how = _how(run, source)
    of_given = f"{_words_of(run.experiment)} {given}"
    asked = view.ask(
        Intervention,
        SCOPE,
        forced=view.held(FORCED, holds_for=of_given),
        at=view.by(
            lambda asked: view.held(
                AT,
                holds_for=f"{run.id} {of_given} {how} {asked.forced}",
            )
        ),
    )
    if how.method == BEAM:
        _search(run, source, how, asked.forced)
    elif how.method == BESIDE:
        _beside(source, how, asked.forced)
    else:
        _desk(run, source, how, asked, choices)


def _put(name: str, value: object) -> None:
    """Change a value of the view, from a callback."""
    st.session_state[f"{SCOPE}-{name}"] = value


def _words_of(experiment: Experiment) -> str:
    """Return a key that differs between vocabularies."""
    task = experiment.task
    parts = (task.kind, task.name, *(getattr(task, one, "") for one in ("size", "unit", "data")))
    return " ".join(map(str, parts))


def _picture(run: Run, step: int, _choices: DeltaGenerator) -> tuple[Source, str]:
    """Ask for a test picture; return what the model writes from, and its name."""
    n = run.experiment.task_as(CaptionTaskConfig).n_test
    offered = view.number(N_("Test picture"), 1, n, 1, is_typed=True, look={"width": 220})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        number = view.ask(WrittenFrom, SCOPE, hidden=("text",), picture=offered).picture
        st.button(
            _("Next picture"),
            icon=":material/casino:",
            key="translate-another",
            on_click=_put,
            args=("picture", number % n + 1),
        )
    return picture_source(run, number - 1, step), str(number)


def _text(run: Run, step: int, choices: DeltaGenerator) -> tuple[Source, str]:
    """Ask for a sentence or a prompt; return what the model writes from, and the text."""
    task = text_task(run.experiment.task)
    label, help = N_("Your sentence"), N_("Use the task's words, then press Enter.")
    if not run.experiment.task.has_source:
        label, help = N_("Prompt"), N_("Press Enter to continue it; may be empty.")
    words = _words_of(run.experiment)
    offered = view.text(label, _first(run, task), MAX_TEXT, help=help, holds_for=words)
    text = view.ask(WrittenFrom, SCOPE, hidden=("picture",), text=offered).text
    with choices.container(horizontal=True, gap="small"):
        sentence_field.buttons(task, key=SCOPE)
    source = _read(run, step, task, text)
    if task.missing is None:
        before: Sequence[str] = ()
        with suppress(ValueError):
            before = task.tokenize(text) if text.strip() else ()
        if candidates := next_words(task, before):
            sentence_field.chips(task, {_("Possible next words"): list(candidates)}, key=SCOPE)
    return source, text


def _read(run: Run, step: int, task: TextTask, text: str) -> Source:
    """Return the source of a text; if it is invalid, say why and keep the last one."""
    try:
        source = source_of(run, typed.within(text, MAX_TEXT), step)
    except ValueError as error:
        st.warning(escape(_(error)), icon=":material/spellcheck:")
        if 0 < len(text) <= MAX_TEXT:
            sentence_field.suggest(task, text, key=SCOPE)
        run_id, last = st.session_state.get(_READ, ("", ""))
        shown = last if run_id == run.id else _first(run, task)
        st.caption(_("Showing “{text}”", text=escape(shown)))
        return source_of(run, shown, step)
    st.session_state[_READ] = (run.id, text)
    sentence_field.mark_unknown(task, text)
    return source


def _first(run: Run, task: TextTask) -> str:
    """Return the text that is shown before one is typed."""
    if run.experiment.task.facts.answer == "text":
        return example_text(run, answer.FIRST[run.experiment.task_as(CorpusTaskConfig).unit])
    try:
        return str(run.probe().items[0]["src_text"])
    except (OSError, ValueError, LookupError):
        return sentence_field.drawn_text(task, seed=0)


def _how(run: Run, source: Source) -> How:
    """Ask how to write, where a model can do so in more than one way."""
    task = run.experiment.task
    # a text may go on in many ways
    knows_truth = task.facts.answer != "text" and task.is_trained_here
    methods = {name: label for name, label in METHODS.items() if knows_truth or name != BESIDE}
    most = min(source.longest, 400)
    hidden = [] if source.context else ["length"]
    if source.is_at_once:
        hidden.append("method")
    how = view.ask(
        How,
        SCOPE,
        hidden=hidden,
        method=view.choice(N_("Method"), methods, look=answer.COLLAPSED),
        length=view.number(N_("Tokens to write"), 1, most, min(20, most), **answer.TYPED),
    )
    if how.method == SAMPLE:
        st.button(
            _("Sample again"),
            icon=":material/casino:",
            key="translate-draw",
            on_click=_put,
            args=("seed", (how.seed + 1) % 10**6),
        )
    return how if source.context else dataclasses.replace(how, length=source.longest)


def _written(source: Source, how: How, forced: Forced = ()) -> Writing:
    return steps.write(source, how.sampling, seed=how.seed, n=how.length, forced=dict(forced))


def _desk(run: Run, source: Source, how: How, asked: Intervention, choices: DeltaGenerator) -> None:
    """Show one text, token by token: candidates, attention and the reader's tokens."""
    forced = asked.forced
    writing = _written(source, how, forced)
    own = _written(source, how) if forced else None
    facts = [(_("It writes") if own is None else _("With your tokens"), writing.text)]
    is_right = None
    if source.truth is not None:
        truth = source.text(source.truth)
        facts.append((_("Truth"), truth))
        is_right = source.text(writing.words) == truth
    line = answer.in_a_line(*facts, is_right=is_right)
    st.markdown(f"{line}\u2002 :grey[ln p] {in_nats(writing.score)}")
    with choices:
        aligning = _aligning(str(run.folder), source.step, run)
        layer, number = answer.head_of(
            N_("Attention of the chosen token"),
            writing.attention,
            SCOPE,
            run_id=run.id,
            aligning="" if aligning is None else f"{aligning[0] + 1}.{aligning[1] + 1}",
        )
        glosses.switch(run.experiment, key="translate-glosses")
    writing_desk(
        writing,
        writing.looked(layer, number),
        DeskView(
            at=asked.at,
            mark=f"{run.id} {source.mark} {how} {forced}",
            forced=[source.vocabulary.token(id) for _place, id in forced],
            own=own,
            is_drawn=how.method == SAMPLE,
            glosses=glosses.shown(run.experiment),
            language=language_of(run.experiment),
        ),
        force=lambda place, id: _put("forced", _toggled(forced, place, id)),
        undo=lambda: _put("forced", forced[:-1]),
        free=lambda: _put("forced", ()),
        move=lambda step: _put("at", step),
        key="translate-desk",
    )
    words = {
        "encoder-only": paragraph("translate/desk-encoder"),
        "decoder-only": _("Colours and lines: attention of the chosen token."),
        "captioner": _("Orange: patches that this word's cross-attention reads."),
        "recurrent": _("Colours and lines: attention to the source."),
    }
    usual = _("Colours and lines: cross-attention of the chosen token.")
    st.caption(words.get(run.experiment.model.family, usual))


def _toggled(forced: Forced, place: int, id: int) -> Forced:
    """Return the reader's tokens with another one at a place, or without the one that is there."""
    others = tuple(pair for pair in forced if pair[0] != place)
    is_new = (place, id) not in forced and place < MAX_STEPS
    return (*others, (place, id)) if is_new else others


@st.cache_data(show_spinner=False, max_entries=32)
def _aligning(folder: str, step: int, _run: Run) -> tuple[int, int] | None:
    return aligning_head(_run)


def _search(run: Run, source: Source, how: How, forced: Forced) -> None:
    """Show the texts of a beam search."""
    if forced:
        tokens = ", ".join(
            f"“{escape(source.vocabulary.token(id))}” ({place + 1})" for place, id in forced
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(
                _("Tokens in every text (position): {tokens}", tokens=tokens), width="content"
            )
            st.button(_("Clear tokens"), key="translate-free", on_click=_put, args=("forced", ()))
    comparison = answer.search(f"{run.id} {source.mark}", how.beam, forced, source)
    if comparison is None:
        st.caption(_("The text has ended."))
        return
    if how.length > answer.MAX_SEARCHED and not all(text.is_done for text in comparison.steps[-1]):
        st.caption(_("Beams stop at {n} tokens.", n=answer.MAX_SEARCHED))
    answer.searched(comparison, lambda tokens: source.text(tokens) or "–", key=SCOPE)


def _beside(source: Source, how: How, forced: Forced) -> None:
    """Show teacher forcing beside free running."""
    writing = _written(source, how, forced)
    found = beside_truth(writing)
    if found is None:
        _no_truth(source)
        return
    places, truth_score = found
    st.markdown(_diverging(places))
    words = {
        "place": _("Token"),
        "truth": _("Truth"),
        "taught": _("Teacher forcing, given the true tokens"),
        "free": _("Free running, given its own tokens"),
        "parts": _("they diverge here"),
    }
    st.html(beside_table(places, words))
    scores = _(
        "ln p of the truth: {truth}; of the generated text: {free}.",
        truth=in_nats(truth_score),
        free=in_nats(writing.score),
    )
    st.caption(scores, help=paragraph("translate/beside-truth"))


def _diverging(places: pd.DataFrame) -> str:
    """Say where the two texts part, and how many tokens of each are right."""
    at = parts_at(places)
    is_true = places["truth"].notna()
    counts = _(
        "Right: {taught} of {n} with teacher forcing, {free} running free.",
        taught=int((places["taught_right"] & is_true).sum()),
        free=int((places["free_right"] & is_true).sum()),
        n=int(is_true.sum()),
    )
    if at is None:
        return f"{_('**They never diverge**: its text is the truth.')} {counts}"
    truth, free = (
        f"“{escape(token)}”" if token is not None else "∅"
        for token in places.loc[at, ["truth", "free"]]
    )
    words = _(
        "**They diverge at token {n}**: {truth} is true, {free} was written.",
        n=at + 1,
        truth=truth,
        free=free,
    )
    return f"{words} {counts}"


def _no_truth(source: Source) -> None:
    """Say why nothing is compared, and offer sentences of the task."""
    task = text_task(source.experiment.task)
    if (missing := task.missing) is not None:
        show.problem(missing)
        return
    st.info(_("The task has no answer for this sentence. Try:"), icon=":material/help:")
    with st.container(horizontal=True, gap="small"):
        for seed in range(3):
            text = sentence_field.drawn_text(task, seed)
            st.button(text, key=f"translate-known-{seed}", on_click=_put, args=("text", text))


if __name__ == "__main__":
    page()
