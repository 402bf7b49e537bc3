"""Writing: a GPT reads, writes, shows its layers, and adds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.app import show, state, typed
from pages.app.address import view
from pages.app.model import question, sentence_field
from pages.app.navigation import head
from pages.app.runs import run_actions
from pages.app.runs.shown_run import Needs
from pages.app.settings import own_choice
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext, paragraph
from pages.try_it import answer
from pages.try_it.answer import BEAM, BESIDE, METHODS, SAMPLE, How
from tfm_core.choices.config import CorpusTaskConfig, Experiment, TextTaskConfig
from tfm_core.choices.config.corpus_tasks import text_problem
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.units import UNITS
from tfm_core.data.corpus.task import read_text
from tfm_core.data.opened.spelling import running
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.data.tasks import text_task
from tfm_core.inspect.attention import trained
from tfm_core.inspect.compare.conclusions import settled
from tfm_core.inspect.text import gpt_writing, questions
from tfm_core.inspect.text.gpt_reading import lens_logits, look_through, sum_of
from tfm_core.inspect.text.gpt_writing import Sample
from tfm_core.inspect.text.surprisal import BITS, example_text, surprisals
from tfm_core.inspect.writing.source import Ids, continuing
from tfm_core.plots.chart import chart
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.plots.texts import gpt as plots
from tfm_core.plots.texts.writing import surprise_text, visible, written_text
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.decoding import SamplingConfig

SCOPE = "gpt"
LANGUAGE = Needs(
    N_("a language model"),
    lambda experiment: experiment.task.facts.answer == "text",
    first="recorded-grammar",
    presets=("gpt-grammar", "gpt-text"),
)
ADDITION = Needs(
    N_("a GPT that adds"),
    lambda experiment: (
        experiment.model.family == "decoder-only" and experiment.task.name == "addition"
    ),
    first="recorded-addition",
    presets=("addition-3", "addition"),
)
MAX_READ, MAX_TEXT, MAX_LOOKED, MAX_SUM = 6000, 400, 200, 40  # characters
MAX_SHOWN = 24  # columns with readable tokens
_HOT = 2.0
"""The temperature of the question."""
_WRITTEN, _COMMAND = "gpt-written", "gpt-asked"
_TEXT = "gpt-own-text"


@dataclass(frozen=True)
class GptPart:
    """What the model does."""

    part: str = view.choice(
        N_("Part"),
        {
            "read": N_("Read"),
            "write": N_("Write"),
            "lens": N_("Lens"),
            "add": N_("Add"),
            "train": N_("Own text"),
        },
        look=answer.COLLAPSED,
    )


def page() -> None:
    show.header("gpt")
    with view.drawing():  # another part has other fields
        with head.beside():
            part = view.ask(GptPart, SCOPE).part
        try:
            if part == "train":
                _own()
                return
            run = head.run(ADDITION if part == "add" else LANGUAGE)
            if run is None:
                return
            head.step([trained.model_of(run)[1]])
            {"add": _add, "write": _write, "lens": _lens, "read": _read}[part](run)
        except (OSError, ValueError) as error:
            show.problem(error)


def _read(run: Run) -> None:
    """Colour a text by how much each token surprises the model."""
    offered = view.text(
        N_("Text"),
        example_text(run),
        MAX_TEXT,
        is_long=True,
        help=N_("At first an unseen passage."),
        look={"height": 68},
        holds_for=run.id,
    )
    text = view.one(offered, "text", SCOPE)
    reading = surprisals(run, typed.within(text, MAX_READ))
    sentence_field.mark_unknown(text_task(run.experiment.task), text)
    unit = run.experiment.task_as(CorpusTaskConfig).unit
    tokens, nats = reading["token"].tolist(), reading["nats"].to_numpy()
    box = st.container(border=True)
    offered = view.number(
        N_("Token"),
        1,
        len(reading),
        int(nats.argmax()) + 1,
        help=N_("Framed in the text; at first the most surprising."),
        query="at",
        holds_for=f"{run.id} {text}",
    )
    picked = view.one(offered, "token", SCOPE) - 1
    with box:
        st.html(surprise_text(tokens, nats, picked, UNITS[unit].separator, say=_))
    _guesses(reading, picked)
    _figures(reading, unit)
    _ask_about_order(run, reading)


def _figures(reading: pd.DataFrame, unit: str) -> None:
    """Show how well a text is predicted, in nats, bits and perplexity."""
    loss = float(reading["nats"].mean())
    bits = {
        "words": _("Bits per word"),
        "characters": _("Bits per character"),
        "bpe": _("Bits per piece"),
    }
    answer.cards(
        (
            _("Loss"),
            _("{nats} nats", nats=f"{loss:.3f}"),
            _("Mean surprise of a token, −ln p."),
        ),
        (
            bits[unit],
            f"{loss * BITS:.2f}",
            _("−log₂ p: the cost of compressing this text."),
        ),
        (
            _("Perplexity"),
            f"{np.exp(loss):.2f}",
            _("exp(loss): as unsure as among this many tokens."),
        ),
        (
            _("Expected loss"),
            _("{nats} nats", nats=f"{reading['entropy'].mean():.3f}"),
            _("Mean entropy of the predictions; much lower than the loss: overconfident."),
        ),
    )


def _guesses(reading: pd.DataFrame, picked: int) -> None:
    """Show what was predicted in place of a token."""
    token, nats, rank, _entropy, best = reading.iloc[picked]
    st.markdown(
        _(
            "Token {n}, **{token}**: {bits} bits, probability {p}, guess no. {rank}.",
            n=picked + 1,
            token=escape(plots.shown(token)),
            bits=f"{nats * BITS:.2f}",
            p=f"{np.exp(-nats):.3g}",
            rank=f"{rank:,}",
        )
    )
    show.figure(
        plots.guesses(best, token, float(np.exp(-nats)), int(rank)),
        _("Predictions here; the actual token is marked."),
        key="gpt-guesses",
    )


def _ask_about_order(run: Run, reading: pd.DataFrame) -> None:
    """Ask how the model reads the text backwards."""
    task, every = text_task(run.experiment.task), tuple(reading["token"])
    tokens = [token for token in every if token != run.experiment.task.end]
    backwards = task.join_tgt(tokens[::-1])
    if len(tokens) < 2 or tokens == tokens[::-1]:
        return
    mark = trained.checkpoint_mark(run)
    asked = questions.about_order(reading, surprisals(run, backwards))
    question.check({"order": asked}, of=f"{run.id} {mark} {every}")


def _write(run: Run) -> None:
    """Continue a prompt: several samples step by step, or by beam search."""
    first = example_text(run, answer.FIRST[_unit(run)])
    help = N_("The model continues it; may be empty.")
    offered = view.text(N_("Prompt"), first, MAX_TEXT, help=help, holds_for=run.id)
    prompt = typed.within(view.one(offered, "prompt", SCOPE), MAX_TEXT)
    sentence_field.mark_unknown(text_task(run.experiment.task), prompt)
    samples = 1
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        how = _how()
        if how.method == SAMPLE:
            help = N_("Texts side by side, with successive seeds.")
            offered = view.number(N_("Samples"), 1, 4, 2, help=help, **answer.TYPED)
            samples = view.one(offered, "samples", SCOPE)
    begun = gpt_writing.prompt_ids(run, prompt)
    if how.method == BEAM:
        _search(run, begun, how)
        return
    # sampling is not part of the mark: it may change within a text
    seeds = tuple(range(how.seed, how.seed + samples))
    mark = (run.id, trained.checkpoint_mark(run), begun, seeds)
    st.fragment(_written)(run, mark, how.sampling, how.length)


def _unit(run: Run) -> str:
    return run.experiment.task_as(CorpusTaskConfig).unit


def _how() -> How:
    """Ask how to write; there is no truth to compare a text with."""
    methods = {name: label for name, label in METHODS.items() if name != BESIDE}
    return view.ask(
        How,
        SCOPE,
        method=view.choice(
            N_("Method"),
            methods,
            SAMPLE,
            look=answer.COLLAPSED,
            help=N_("Sample, take the likeliest, or keep several texts."),
        ),
        temperature=answer.offered_temperature(0.8),
        length=view.by(
            lambda asked: view.number(
                N_("Tokens to write"),
                1,
                400,
                20 if asked.method == BEAM else 80,
                of=BEAM if asked.method == BEAM else "",
                **answer.TYPED,
            )
        ),
    )


def _written(run: Run, mark: tuple[Any, ...], sampling: SamplingConfig, length: int) -> None:
    """Write on as far as was asked for, and show the samples side by side.

    mark: names the run, its weights, the prompt and the seeds; for another one, it begins anew.
    """
    stored = st.session_state.get(_WRITTEN)
    if stored is None or stored[0] != mark:
        stored = (mark, [Sample(mark[2], ()) for _seed in mark[3]])
    samples: list[Sample] = stored[1]
    bar = st.container(horizontal=True, gap="small", vertical_alignment="center")
    areas = [column.empty() for column in st.columns(len(samples))]
    command = st.session_state.pop(_COMMAND, None)
    if command == "again":
        samples = [Sample(mark[2], ()) for _seed in mark[3]]
    n = {"step": 1, "on": length - _done(samples)}.get(command, 0)
    if n > 0:
        for longer in gpt_writing.write_on(run, samples, sampling, mark[3], n=n):
            _draw(run, areas, longer, mark)
            samples = longer
    _draw(run, areas, samples, mark)
    st.session_state[_WRITTEN] = (mark, samples)
    with bar:
        _buttons(run, samples, length)
    _next(run, samples[0], sampling)


def _done(samples: list[Sample]) -> int:
    return max(len(sample.chances) for sample in samples)


def _buttons(run: Run, samples: list[Sample], length: int) -> None:
    """Offer to write one token, all that are left, or anew."""
    n, is_over = _done(samples), all(gpt_writing.has_ended(run, one) for one in samples)
    for name, label, icon in (
        ("step", _("Write one token"), ":material/skip_next:"),
        ("on", _("Write the rest"), ":material/play_arrow:"),
        ("again", _("Restart"), ":material/restart_alt:"),
    ):
        st.button(
            label,
            icon=icon,
            key=f"gpt-{name}",
            type="primary" if name == "on" else "secondary",
            disabled=name != "again" and (is_over or n >= length),
            on_click=st.session_state.update,
            args=({_COMMAND: name},),
        )
    st.caption(_("{n} of {length} tokens", n=n, length=length))


def _draw(run: Run, areas: list[Any], samples: list[Sample], mark: tuple[Any, ...]) -> None:
    gap = UNITS[_unit(run)].separator
    for area, sample, seed in zip(areas, samples, mark[3], strict=True):
        tokens = gpt_writing.tokens_of(run, sample.ids)
        n_prompt = len(tokens) - len(sample.chances)
        with area.container(border=True):
            if len(samples) > 1:
                st.caption(_("Seed {seed}", seed=seed))
            st.html(written_text(tokens, sample.chances, n_prompt, gap, say=_))


def _next(run: Run, sample: Sample, sampling: SamplingConfig) -> None:
    """Show what may come next, before and after temperature, top-k and top-p."""
    if gpt_writing.has_ended(run, sample):
        st.caption(_("The first sample has ended with <eos>.").replace("<", "\\<"))
        return
    upcoming, facts = gpt_writing.next_token(run, sample.ids, sampling)
    show.prose(
        paragraph(
            "gpt/next-token",
            left=f"{facts['left']:,}",
            all=f"{facts['all']:,}",
            before=f"{facts['before']:.2f}",
            after=f"{facts['after']:.2f}",
        )
    )
    figure = chart(
        upcoming,
        "bars",
        x={"before": _("model"), "after": _("sampled from")},
        y="place",
        orientation="h",
        ticks=[plots.shown(token) for token in upcoming["token"]],
        looks=[{"colour": GREY, "pattern": "/"}, {"colour": COLOURS["decoder"]}],
    )
    show.figure(
        figure,
        _("Grey: model. Vermilion: after sampling settings."),
        key="gpt-next",
    )
    if sampling.temperature < _HOT:
        hotter, _facts = gpt_writing.next_token(
            run, sample.ids, replace(sampling, temperature=_HOT)
        )
        asked = questions.about_temperature(upcoming, hotter)
        question.check({"temperature": asked}, of=f"{run.id} {sample.ids} {sampling}")


def _search(run: Run, prompt: Ids, how: How) -> None:
    source = continuing(run, prompt, how.beam.n)
    comparison = answer.search(f"{run.id} {source.mark}", how.beam, (), source)
    if comparison is None:
        st.caption(_("The prompt has ended."))
        return
    n = len(comparison.steps)
    offered = view.number(N_("After token"), 1, n, n, holds_for=f"{run.id} {source.mark} {how}")
    step = view.one(offered, "after", SCOPE)
    gap = UNITS[_unit(run)].separator
    answer.searched(
        comparison, lambda tokens: gap.join(map(visible, running(tokens))), key=SCOPE, step=step
    )


def _lens(run: Run) -> None:
    """Show what the model would answer after each layer."""
    offered = view.text(
        N_("Text"),
        example_text(run, 16),
        MAX_LOOKED,
        help=lambda: _("Shows the first {n} tokens.", n=MAX_SHOWN - 1),
        holds_for=run.id,
    )
    _look_through(run, typed.within(view.one(offered, "lens", SCOPE), MAX_LOOKED))
    show.code(lens_logits)


def _look_through(run: Run, text: str) -> None:
    """Draw the lens on a text, or on the answer of an adder."""
    looked = look_through(run, text)
    show.figure(
        plots.lens_map(*looked, state.theme(), most=MAX_SHOWN),
        _("Rows: what the model would predict after each layer."),
        key="gpt-lens-map",
    )
    st.markdown(_(settled([row[:MAX_SHOWN] for row in looked[1]])))


def _add(run: Run) -> None:
    n = run.experiment.task_as(TextTaskConfig).size
    offered = view.text(
        N_("A sum"),
        f"{'8' * n}+{'1' * (n - 1)}7",
        MAX_SUM,
        help=lambda: _("Up to {n} digits each, such as 12+34.", n=n),
        holds_for=run.id,
    )
    text = typed.within(view.one(offered, "sum", SCOPE), MAX_SUM)
    source, written, truth, chances = sum_of(run, text)
    sure = show.percent(float(chances.to_numpy().max(1).prod()))
    st.markdown(
        answer.in_a_line(
            (_("A sum"), source),
            (_("Model"), "".join(token for token in written if token != "<eos>")),
            (_("Truth"), "".join((truth or ())[:-1])),
            (_("Probability of this answer"), sure),
            is_right=written == truth,
        )
    )
    show.figure(
        plots.digit_map(truth or (), chances, state.theme()),
        _("Framed ✓: the true digit. Carries come from the right."),
        key="gpt-digits",
    )
    st.header(_("Logit lens"), anchor=False)
    _look_through(run, text)


def _own() -> None:
    """Ask for a text and its tokens, and train on it."""
    show.prose(paragraph("gpt/own-text"))
    st.session_state.setdefault(_TEXT, state.own_text())
    text = st.text_area(
        _("Training text"),
        key=_TEXT,
        height=240,
        placeholder=read_text()[:600] + " …",
        on_change=lambda: state.set_own_text(st.session_state[_TEXT]),
        persist_state="session",
    )
    units = {name: unit.label for name, unit in UNITS.items()}
    help = N_("Words need much more text than characters.")
    unit = view.one(view.choice(N_("Tokens"), units, "characters", help=help), "unit", SCOPE)
    read = text or read_text()
    tokens = learned_from_text(unit, read).cut_text(read)
    st.caption(
        ngettext(
            "{n} token, {different} distinct.",
            "{n} tokens, {different} distinct.",
            len(tokens),
            n=f"{len(tokens):,}",
            different=f"{len(set(tokens)):,}",
        )
    )
    problem = text_problem(text, unit) if text else None
    if problem is not None:
        show.problem(problem)
    if st.button(
        _("Train on this text"),
        type="primary",
        icon=":material/play_arrow:",
        disabled=problem is not None,
        key="gpt-own-train",
    ):
        _train(text, unit)
    st.caption(_("Saved as a data set; manage it on Own data."))


def _train(text: str, unit: str) -> None:
    """Keep the text as a data set, and train on it."""
    values = PRESETS["gpt-text"].experiment.model_dump()
    data = own_choice.keep_text(text, unit).id if text else ""
    values["task"] |= {"data": data, "unit": unit}
    name = _("My text") if text else "Alice"
    run = run_actions.start(Experiment.parse(values), name=f"{name}, {_(UNITS[unit].label)}")
    if run is not None:
        run_actions.watch(run)


if __name__ == "__main__":
    page()
