"""A model writes token by token from a sentence, a prompt or a picture; the reader may step in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import article, show, typed
from pages.app.address import view
from pages.app.address.parameters import Number
from pages.app.model import your_input
from pages.app.model.answer import gloss_switch, glosses_of_run
from pages.app.navigation import head
from pages.app.runs.shown_run import Needs
from pages.app.typed import escape
from pages.components.writing_desk import DeskView, writing_desk
from pages.i18n import N_, _, paragraph
from pages.try_it import answer, pictures
from tfm_core.choices.config import CorpusTaskConfig, Experiment
from tfm_core.choices.variants.tasks import UNITS
from tfm_core.data.tasks import text_task
from tfm_core.data.text.english_korean import language_of
from tfm_core.data.text.task import TextTask
from tfm_core.data.vocabulary import text_pieces
from tfm_core.inspect import generation
from tfm_core.inspect.attention.maps import aligning_head, head_map
from tfm_core.inspect.attention.trained import steps_of
from tfm_core.inspect.generation import (
    BeamSettings,
    Writing,
    about_temperature,
    compare_with_truth,
    first_error,
    in_nats,
    next_token,
)
from tfm_core.inspect.generation_source import (
    Ids,
    Source,
    can_write,
    next_words,
    picture_source,
    source_of,
)
from tfm_core.inspect.text.captions import look_at_picture
from tfm_core.inspect.text.language_model import example_text
from tfm_core.plots.writing import beside_table, visible, written_text
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.decoding import SamplingConfig

SCOPE = "write"
MAX_TEXT, MAX_STEPS = 400, 1024
_LAST_VALID = "write-read"  # the last valid text, and its run
WRITES = Needs(
    N_("a model that writes"),
    can_write,
    first="recorded-korean",
    presets=("translate", "gpt-grammar", "captions"),
)
GREEDY, SAMPLE, BEAM, BESIDE = "greedy", "sample", "beam", "beside"
METHODS = {
    GREEDY: N_("Greedy"),
    SAMPLE: N_("Sample"),
    BEAM: N_("Beam search"),
    BESIDE: N_("Compare with truth"),
}
_HOT = 2.0
"""The temperature of the question."""
MAX_SEARCHED = 100
"""Most tokens of a beam search: every step reads all its texts again."""
FIRST = {"words": 2, "characters": 12, "bpe": 4}
"""Tokens of a language model's default prompt, by its unit."""
_TENTHS = [round(0.1 * n, 1) for n in range(21)]
_SLIDER: dict[str, Any] = {"form": "{}", "look": {"width": 140}}
TYPED: dict[str, Any] = {"is_typed": True, "look": {"width": 105}}
_SAMPLED: dict[str, Any] = {"when": lambda how: how.method == SAMPLE}
_SEARCHED: dict[str, Any] = {"when": lambda how: how.method == BEAM}


def temperature_field(first: float) -> Any:
    """Return the field of the temperature; language models have their own default."""
    return view.pick(
        N_("Temperature"),
        _TENTHS,
        first,
        help=lambda: paragraph("sampling/temperature"),
        **_SLIDER,
        **_SAMPLED,
    )


def samples_field(first: int) -> Any:
    help = N_("Texts side by side, with successive seeds.")
    return view.number(N_("Samples"), 1, 4, first, help=help, **TYPED, **_SAMPLED)


@dataclass(frozen=True)
class How:
    """How a text is written."""

    method: str = view.choice(N_("Method"), METHODS, look=answer.COLLAPSED)
    temperature: float = temperature_field(1.0)
    top_k: int = view.number(
        N_("Top-k"), 0, 1000, 0, help=lambda: paragraph("sampling/top-k"), **TYPED, **_SAMPLED
    )
    top_p: float = view.pick(
        N_("Top-p"),
        [round(0.05 * n, 2) for n in range(1, 21)],
        1.0,
        help=lambda: paragraph("sampling/top-p"),
        **_SLIDER,
        **_SAMPLED,
    )
    seed: int = view.number(
        N_("Seed"), 0, 10**6, 0, help=N_("The same seed gives the same text."), **TYPED, **_SAMPLED
    )
    samples: int = samples_field(1)
    width: int = view.number(
        N_("Width"), 1, 16, 4, help=N_("Texts kept per step; 1 is greedy."), **TYPED, **_SEARCHED
    )
    penalty: float = view.pick(
        N_("Length penalty"),
        _TENTHS,
        0.0,
        help=N_("Ranks by ln p / ((5 + tokens) / 6)^penalty."),
        **_SLIDER,
        **_SEARCHED,
    )
    length: int = view.number(N_("Tokens to write"), 1, 400, 20, **TYPED)

    @property
    def sampling(self) -> SamplingConfig:
        """How a token is drawn: greedily by all methods but sampling."""
        from tfm_core.decoding import SamplingConfig

        if self.method != SAMPLE:
            return SamplingConfig(temperature=0)
        return SamplingConfig(self.temperature, self.top_k, self.top_p)

    @property
    def beam(self) -> BeamSettings:
        """How texts are searched."""
        return BeamSettings(self.width, min(self.length, MAX_SEARCHED), self.penalty)


Forced = tuple[tuple[int, int], ...]
"""Tokens that the reader set, in order: position from 0, and token id."""


def read_forced(text: str) -> Forced | None:
    """Parse ``3-17,1-9``: positions from 1 and token ids; None if the text is invalid."""
    tokens: dict[int, int] = {}
    for part in filter(None, text.split(",")):
        pair = re.fullmatch(r"([0-9]{1,4})-([0-9]{1,6})", part)
        if pair is None or not 1 <= int(pair[1]) <= MAX_STEPS:
            return None
        tokens[int(pair[1]) - 1] = int(pair[2])
    return tuple(tokens.items())


def write_forced(forced: Forced) -> str:
    return ",".join(f"{place + 1}-{id}" for place, id in forced)


def _forced(holds_for: str = "") -> Any:
    rule = N_("positions and token numbers, such as 3-17,5-9")
    return view.written(".*", rule, read_forced, write_forced, default=(), holds_for=holds_for)


AT = Number("", first=0, low=0, high=MAX_STEPS)


@dataclass(frozen=True)
class Intervention:
    """Tokens that the reader set, and the shown step; 0 is the whole text."""

    forced: tuple[tuple[int, int], ...] = _forced()
    at: int = view.held(AT)


def write(run: Run) -> None:
    """Ask for the source and the method, and show the written text."""
    step = head.step(steps_of(run))
    if run.experiment.task.describes_pictures:
        st.fragment(_describe)(run, step)  # moving a digit redraws only this part
        return
    above, choices = show.fact_line(SCOPE)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    with above:
        source, text = _text(run, step, choices)
    _answer(run, source, text, row, choices)


def _describe(run: Run, step: int) -> None:
    """Ask for a picture, and show its caption beside it."""
    left, right = st.columns([5, 7], gap="large")
    with left:
        pieces, reading = pictures.composed(run, step)
    scene = str([(piece.placed, hash(piece.pixels.tobytes())) for piece in pieces])
    with right:
        if reading is None:
            st.caption(_("Complete the picture first."))
            return
        assert reading.example.picture is not None
        truth = tuple(reading.example.item["truth"])
        source = picture_source(run, reading.example.picture, truth, step)
        row, choices = show.fact_line(SCOPE)
        chosen = _answer(run, source, scene, row, choices)
        if chosen is not None and reading.words:
            pictures.strip(reading, *chosen)
    with left:
        if chosen is not None and reading.words:
            pictures.inside(reading, *chosen)
        pictures.check(run, pieces, reading, of=scene)
    show.code(look_at_picture)


def _answer(
    run: Run, source: Source, source_key: str, row: DeltaGenerator, choices: DeltaGenerator
) -> tuple[int, int] | None:
    """Ask for the method in ``row`` and rare settings in ``choices``, and show the written text.

    Returns the layer and the head whose attention is shown, if any.
    """
    with row:
        how = _how(run, source, choices)
    key = f"{_vocabulary_key(run.experiment)} {source_key}"
    intervention = view.ask(
        Intervention,
        SCOPE,
        forced=_forced(key),
        at=view.by(lambda so_far: view.held(AT, holds_for=f"{run.id} {key} {how} {so_far.forced}")),
    )
    if how.method == BEAM:
        _search(run, source, how, intervention.forced)
    elif how.method == BESIDE:
        _beside(source, how, intervention.forced)
    else:
        return _desk(run, source, how, intervention, choices)
    return None


def _vocabulary_key(experiment: Experiment) -> str:
    """Return a key that differs between vocabularies."""
    task = experiment.task
    sizes = (getattr(task, name, "") for name in ("size", "unit", "data"))
    return " ".join(map(str, (task.kind, task.name, *sizes)))


def _text(run: Run, step: int, choices: DeltaGenerator) -> tuple[Source, str]:
    """Ask for a sentence or a prompt; return the source and the text."""
    task = text_task(run.experiment.task)
    label, help = N_("Your sentence"), N_("Use the task's words, then press Enter.")
    if not run.experiment.task.has_source:
        label, help = N_("Prompt"), N_("Press Enter to continue it; may be empty.")
    key = _vocabulary_key(run.experiment)
    field = view.text(label, _first(run, task), MAX_TEXT, help=help, holds_for=key)
    text = str(view.one(field, "text", SCOPE))
    with choices.container(horizontal=True, gap="small"):
        your_input.sentence_buttons(task, key=SCOPE)
    source = _read(run, step, task, text)
    if task.missing is None:
        before: Sequence[str] = ()
        with suppress(ValueError):
            before = task.tokenize(text) if text.strip() else ()
        if candidates := next_words(task, before):
            your_input.chips(task, {_("Possible next words"): list(candidates)}, key=SCOPE)
    return source, text


def _read(run: Run, step: int, task: TextTask, text: str) -> Source:
    """Return the source of a text; if it is invalid, show why and keep the last one."""
    try:
        source = source_of(run, typed.check_length(text, MAX_TEXT), step)
    except ValueError as error:
        st.warning(escape(_(error)), icon=":material/spellcheck:")
        if 0 < len(text) <= MAX_TEXT:
            your_input.suggest(task, text, key=SCOPE)
        run_id, last = st.session_state.get(_LAST_VALID, ("", ""))
        shown = last if run_id == run.id else _first(run, task)
        st.caption(_("Showing “{text}”", text=escape(shown)))
        return source_of(run, shown, step)
    st.session_state[_LAST_VALID] = (run.id, text)
    your_input.mark_unknown(task, text)
    return source


def _first(run: Run, task: TextTask) -> str:
    """Return the default text."""
    if run.experiment.task.facts.answer == "text":
        return example_text(run, FIRST[run.experiment.task_as(CorpusTaskConfig).unit])
    try:
        return str(run.probe().items[0]["src_text"])
    except (OSError, ValueError, LookupError):
        return your_input.sample_text(task, seed=0)


def _how(run: Run, source: Source, choices: DeltaGenerator) -> How:
    """Ask for the method and its settings, as far as the model has them."""
    task, is_language = run.experiment.task, bool(source.context)
    # a text may continue in many ways
    knows_truth = not is_language and task.is_trained_here
    methods = {name: label for name, label in METHODS.items() if knows_truth or name != BESIDE}
    # an opened model may be large
    n_samples, n_sampled = (2, 80) if is_language and task.is_trained_here else (1, 20)
    hidden = [] if is_language else ["length", "samples"]
    if source.is_at_once:
        hidden.append("method")
    how = view.ask(
        How,
        SCOPE,
        hidden=hidden,
        places={"samples": choices},
        method=view.choice(
            N_("Method"),
            methods,
            SAMPLE if is_language else GREEDY,
            of="language" if is_language else "",
            look=answer.COLLAPSED,
        ),
        temperature=temperature_field(0.8 if is_language else 1.0),
        samples=samples_field(n_samples),
        length=view.by(
            lambda so_far: view.number(
                N_("Tokens to write"),
                1,
                400,
                n_sampled if so_far.method == SAMPLE else 20,
                of=SAMPLE if so_far.method == SAMPLE else "",
                **TYPED,
            )
        ),
    )
    if how.method == SAMPLE:
        st.button(
            _("Sample again"),
            icon=":material/casino:",
            key=f"{SCOPE}-draw",
            on_click=partial(view.put, SCOPE, seed=(how.seed + how.samples) % 10**6),
        )
    return how if is_language else replace(how, length=source.longest)


def _written(source: Source, how: How, forced: Forced = (), *, more: int = 0) -> Writing:
    """Write a text. more: added to the seed."""
    seed = how.seed + more
    return generation.write(source, how.sampling, seed=seed, n=how.length, forced=dict(forced))


def _desk(
    run: Run, source: Source, how: How, intervention: Intervention, choices: DeltaGenerator
) -> tuple[int, int]:
    """Show one text, token by token: candidates, attention and the reader's tokens.

    Returns the layer and the head whose attention is shown.
    """
    forced = intervention.forced
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
        gloss_switch(run.experiment, key=f"{SCOPE}-glosses")

    def force(position: int, id: int) -> None:
        """Set a token, or remove it if it is set already."""
        others = tuple(pair for pair in forced if pair[0] != position)
        is_new = (position, id) not in forced and position < MAX_STEPS
        view.put(SCOPE, forced=(*others, (position, id)) if is_new else others)

    writing_desk(
        writing,
        head_map(writing.attention, layer, number),
        DeskView(
            at=intervention.at,
            mark=f"{run.id} {source.mark} {how} {forced}",
            forced=[source.vocabulary.token(id) for _place, id in forced],
            own=own,
            is_drawn=how.method == SAMPLE,
            glosses=glosses_of_run(run.experiment),
            language=language_of(run.experiment),
        ),
        force=force,
        undo=lambda: view.put(SCOPE, forced=forced[:-1]),
        free=lambda: view.put(SCOPE, forced=()),
        move=lambda step: view.put(SCOPE, at=step),
        key=f"{SCOPE}-desk",
    )
    captions = {
        "encoder-only": paragraph("try/desk-encoder"),
        "decoder-only": _("Colours and lines: attention of the chosen token."),
        "captioner": _("Orange: patches that this word's cross-attention reads."),
        "recurrent": _("Colours and lines: attention to the source."),
    }
    usual = _("Colours and lines: cross-attention of the chosen token.")
    st.caption(captions.get(run.experiment.model.family, usual))
    if source.context and how.method == SAMPLE:
        _samples(source, how, _unit(run))
        ids = tuple(token.own.id for token in writing.tokens[: max(0, intervention.at - 1)])
        _next(run, source, ids, how.sampling)
    return layer, number


def _unit(run: Run) -> str:
    return run.experiment.task_as(CorpusTaskConfig).unit


def _samples(source: Source, how: How, unit: str) -> None:
    """Show the other samples side by side."""
    if how.samples == 1:
        return
    prompt = source.tokens_of(source.prompt)
    for more, column in enumerate(st.columns(how.samples - 1), 1):
        writing = _written(source, how, more=more)
        chances = [token.own.chance for token in writing.tokens]
        tokens = (*prompt, *(source.vocabulary.token(token.own.id) for token in writing.tokens))
        with column.container(border=True):
            st.caption(_("Seed {seed}", seed=how.seed + more))
            gap = UNITS[unit].separator
            st.html(written_text(tokens, chances, len(prompt), gap, say=_))


def _next(run: Run, source: Source, ids: Ids, sampling: SamplingConfig) -> None:
    """Show how many tokens may come next, before and after temperature, top-k and top-p."""
    upcoming, facts = next_token(source, ids, sampling)
    show.prose(
        paragraph(
            "try/next-token",
            left=f"{facts['left']:,}",
            all=f"{facts['all']:,}",
            before=f"{facts['before']:.2f}",
            after=f"{facts['after']:.2f}",
        )
    )
    if sampling.temperature < _HOT:
        hotter, _facts = next_token(source, ids, replace(sampling, temperature=_HOT))
        about = about_temperature(upcoming, hotter)
        article.check({"temperature": about}, of=f"{run.id} {source.mark} {ids} {sampling}")


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
            st.button(
                _("Clear tokens"), key=f"{SCOPE}-free", on_click=partial(view.put, SCOPE, forced=())
            )
    comparison = answer.search(f"{run.id} {source.mark}", how.beam, forced, source)
    if comparison is None:
        st.caption(_("The text has ended."))
        return
    if how.length > MAX_SEARCHED and not all(text.is_done for text in comparison.steps[-1]):
        st.caption(_("Beams stop at {n} tokens.", n=MAX_SEARCHED))
    n, step, join = len(comparison.steps), 0, source.text
    if source.context:
        of = f"{run.id} {source.mark} {how}"
        step = view.one(view.number(N_("After token"), 1, n, n, holds_for=of), "after", SCOPE)
        gap = UNITS[_unit(run)].separator

        def join(tokens: Sequence[str]) -> str:
            return gap.join(map(visible, text_pieces(tokens)))

    answer.show_search(comparison, lambda tokens: join(tokens) or "–", key=SCOPE, step=step)


def _beside(source: Source, how: How, forced: Forced) -> None:
    """Show teacher forcing beside free running."""
    writing = _written(source, how, forced)
    compared = compare_with_truth(writing)
    if compared is None:
        _no_truth(source)
        return
    places, truth_score = compared
    st.markdown(_divergence(places))
    labels = {
        "place": _("Token"),
        "truth": _("Truth"),
        "taught": _("Teacher forcing, given the true tokens"),
        "free": _("Free running, given its own tokens"),
        "parts": _("they diverge here"),
    }
    st.html(beside_table(places, labels))
    scores = _(
        "ln p of the truth: {truth}; of the generated text: {free}.",
        truth=in_nats(truth_score),
        free=in_nats(writing.score),
    )
    st.caption(scores, help=paragraph("try/beside-truth"))


def _divergence(places: pd.DataFrame) -> str:
    """Return where the two texts diverge, and how many tokens of each are right."""
    at = first_error(places)
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
    sentence = _(
        "**They diverge at token {n}**: {truth} is true, {free} was written.",
        n=at + 1,
        truth=truth,
        free=free,
    )
    return f"{sentence} {counts}"


def _no_truth(source: Source) -> None:
    """Show why nothing is compared, and offer sentences of the task."""
    task = text_task(source.experiment.task)
    if (missing := task.missing) is not None:
        show.problem(missing)
        return
    st.info(_("The task has no answer for this sentence. Try:"), icon=":material/help:")
    with st.container(horizontal=True, gap="small"):
        for seed in range(3):
            text = your_input.sample_text(task, seed)
            st.button(
                text, key=f"{SCOPE}-known-{seed}", on_click=partial(view.put, SCOPE, text=text)
            )
