"""Before the Transformer: attention in RNNs, and what changed in 2017."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from pages.app import article, show, state
from pages.app.address import view
from pages.app.article import Figures, Made
from pages.app.navigation import page_table
from pages.app.runs import comparison, run_actions, run_time, run_words, runs_access, shown_run
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import TEXT_TASKS, TextTaskConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.positions import Style
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES
from tfm_core.inspect import conclusions
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.alignment import RNN_HEADS, CrossAttentionAtStep, untrained_weights
from tfm_core.inspect.attention.maps import MapView
from tfm_core.inspect.speed.report import BATCH, LENGTHS, recorded_times
from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import chart
from tfm_core.plots.heads.attention import head_map, outline_cells
from tfm_core.plots.model.positions import looks_of
from tfm_core.plots.palette import ORANGE
from tfm_core.runs.queue.limits import n_parameters
from tfm_core.runs.run import Run
from tfm_core.studies.experiments import TRANSLATION_RACE, race_of_attention
from tfm_core.studies.study import Study, StudyRuns, changed

SCOPE = "before"
TICK = 1.5  # seconds
_SENTENCE, _ROUND = "before-sentence", "before-round"
TIMES = Columns(length=Column(form=","), value=Column(form=".2f"))
STYLES = {
    "additive": Style("vermilion", "dash", "square"),
    "one-head": Style("blue", "solid", "circle"),
    "many-heads": Style("green", "dashdot", "diamond"),
}
"""The look of each model in every figure."""
SHORT = {
    "additive": N_("RNN, additive"),
    "one-head": N_("Transformer, 1 head"),
    "many-heads": N_("Transformer, {n} heads", n=RNN_HEADS),
}
ROWS = (
    N_("Whole sequences right"),
    N_("Attention on true words"),
    N_("Alignment error rate"),
    N_("Parameters"),
    N_("Training time"),
    N_("Time per step"),
)
_SOFTMAX = r"\alpha_{tj} = \mathrm{softmax}_j(e_{tj}),\ \ c_t = \sum_j \alpha_{tj} "
LATEX = {
    "additive": (
        r"\begin{gathered} e_{tj} = v^\top \tanh\left(W s_{t-1} + U h_j\right) \\ "
        rf"{_SOFTMAX} h_j \end{{gathered}}"
    ),
    "one-head": (
        r"\begin{gathered} e_{tj} = q_t^\top k_j / \sqrt{d} \\ "
        rf"{_SOFTMAX} v_j \end{{gathered}}"
    ),
    "many-heads": (
        r"\begin{gathered} e^h_{tj} = (q^h_t)^\top k^h_j / \sqrt{d/H} \\ "
        r"\mathrm{out}_t = [c^1_t; \dots; c^H_t]\,W_O \end{gathered}"
    ),
}
QUERIES = {
    "additive": N_("Attends **before** reading the last token."),
    "one-head": N_("The query is the last token."),
    "many-heads": N_("{n} patterns; this one aligns best.", n=RNN_HEADS),
}
EQUATIONS = {
    "2014": (
        r"\begin{gathered} c = h_S \\ s_0 = c,\quad s_t = f(s_{t-1}, y_{t-1}) \quad "
        r"\text{(Sutskever)} \\ s_t = f(s_{t-1}, [y_{t-1}; c]) \quad \text{(Cho)} \end{gathered}"
    ),
    "linear": (
        r"\begin{gathered} e_{tj} = w^\top [s_{t-1}; h_j] = w_1^\top s_{t-1} + w_2^\top h_j \\ "
        r"\mathrm{softmax}_j(e_{tj}) = \mathrm{softmax}_j(w_2^\top h_j) \end{gathered}"
    ),
    "2015": (
        r"\begin{gathered} e_{tj} = v^\top \tanh(W s_{t-1} + U h_j) \\ \alpha_{tj} = "
        r"\frac{\exp e_{tj}}{\sum_k \exp e_{tk}} \\ c_t = \sum_j \alpha_{tj} h_j \end{gathered}"
    ),
    "luong": (
        r"\begin{gathered} e_{tj} = \begin{cases} s_t^\top h_j & \text{dot} \\ "
        r"s_t^\top W h_j & \text{general} \\ "
        r"v^\top \tanh(W [s_t; h_j]) & \text{concat} \end{cases} \\ "
        r"\tilde{s}_t = \tanh(W_c [c_t; s_t]) \end{gathered}"
    ),
    "2017": r"\mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V",
    "2018": (
        r"\begin{gathered} \text{GPT: } p(x_t \mid x_1, \ldots, x_{t-1}) \\ "
        r"\text{BERT: } p(x_t \mid \text{all tokens that are not hidden}) \end{gathered}"
    ),
}


@dataclass(frozen=True)
class Racers:
    """What all three models are trained on."""

    task: str = view.choice(
        N_("Task"), {name: TEXT_TASKS[name].label for name in alignment.rnn_tasks()}, is_list=True
    )
    steps: int = view.number(
        N_("Steps per run"), 100, 3000, 600, step=100, help=N_("Batches of 64 pairs.")
    )


def equation(_made: Made, *, of: str) -> None:
    """Show the equations of an idea."""
    st.latex(EQUATIONS[of])


def presets(_made: Made) -> None:
    """Offer to train the models of three papers."""
    with st.container(horizontal=True):
        for name, label in (
            ("translate-additive", _("Train additive attention")),
            ("translate-luong", _("Train Luong’s attention")),
            ("translate", _("Train the Transformer")),
        ):
            if st.button(label, key=f"before-{name}", icon=":material/play_arrow:"):
                run_actions.start_preset(name)


def linear(_made: Made) -> None:
    """Show that a linear score gives each target word the same weights, and an additive does not.

    A button trains one.
    """
    source, target = ("I", "love", "AI"), ("나는", "AI를", "사랑한다")
    captions = {
        "linear": _("All rows are equal."),
        "additive": _("Each target word has its own weights."),
    }
    differences = {}
    for name, column in zip(captions, st.columns(2, gap="medium"), strict=True):
        weights = untrained_weights(name, len(target), len(source))
        differences[name] = abs(weights - weights[:1]).max()
        shown = MapView(
            weights,
            target,
            source,
            query_title=N_("target token written"),
            key_title=N_("source token"),
            query_words=target,
        )
        title = _("{score} attention", score=_(ALIGNMENT_SCORES[name].label))
        with column:
            figure = head_map(shown, title)
            show.figure(figure, captions[name], key=f"before-untrained-{name}")
    show.prose(paragraph("before/linear", **differences))
    if st.button(_("Train a linear score"), key="before-linear", icon=":material/play_arrow:"):
        preset = PRESETS["translate-additive"].experiment
        experiment = changed(preset, {"model.attention": "linear"})
        run = run_actions.start(experiment, name=_("Translation with a linear score"))
        if run is not None:
            run_actions.watch(run)


def contest(_made: Made) -> None:
    """Train three models side by side, and compare their curves, figures and maps."""
    facts, choices = show.fact_line("before")
    with choices:
        settings = view.ask(Racers, SCOPE)
    chosen = race_of_attention(settings.task, steps=settings.steps)
    trained = comparison.study_runs(chosen)
    length = _("{n} steps", n=f"{settings.steps:,}")
    facts.caption(show.joined(f"**{_(chosen.title)}**", length))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if trained.runs:
            shown_run.recorded_comparison_note(trained.runs)
        comparison.study_buttons(chosen, trained, own=True, key="before")
    if trained.runs:
        comparison.follow(trained.runs, partial(_draw, chosen, trained))
    else:
        comparison.arm_lines(chosen, trained)  # says that nothing is trained yet


def _draw(chosen: Study, trained: StudyRuns, was_live: bool) -> None:
    if was_live:
        comparison.progress(trained.runs)
    shown = trained.shown
    attentions = {name: alignment.cross_attention_at(run) for name, run in shown.items()}
    left, right = st.columns(2, gap="medium")
    with left:
        comparison.learning_curves(
            chosen,
            trained,
            "sequence_accuracy",
            _("whole sequences right"),
            _("Whole unseen sequences right, during training."),
            key="before-curves",
            styles=STYLES,
        )
    with right:
        about = alignment.about_alignment(_aligned(attentions))
        of = " ".join(run.id for run in shown.values())
        if was_live or about is None or article.guess(about, "alignment", of=of):
            columns = {
                _(SHORT[name]): _column(run, attentions[name]) for name, run in shown.items()
            }
            st.table(pd.DataFrame(columns, index=[_(row) for row in ROWS]))
            conclusion = _conclusion(shown, attentions) or _("How the figures are measured")
            st.markdown(conclusion, help=paragraph("before/figures"))
    _maps(chosen, shown, attentions)


def _aligned(attentions: dict[str, CrossAttentionAtStep | None]) -> dict[str, float]:
    return {
        _(SHORT[name]): attention.share
        for name, attention in attentions.items()
        if attention and attention.is_scored
    }


def _conclusion(
    contest: Mapping[str, Run], attentions: dict[str, CrossAttentionAtStep | None]
) -> str:
    whole = {name: _whole(run) for name, run in contest.items()}
    right = {_(SHORT[name]): share for name, share in whole.items() if share is not None}
    aligned = _aligned(attentions)
    task = next(iter(contest.values())).experiment.task_as(TextTaskConfig)
    is_live = comparison.is_live(contest.values())
    n = task.n_validation if is_live else task.n_test
    sentences = [conclusions.most_accurate(right, n), conclusions.best_aligned(aligned, right, n)]
    conclusion = " ".join(_(sentence) for sentence in sentences if sentence is not None)
    return _("So far: {words}", words=conclusion) if is_live and conclusion else conclusion


def _whole(run: Run) -> float | None:
    curves = runs_access.curves(run)
    whole = curves.test.last("sequence_accuracy")
    return curves.validation.last("sequence_accuracy") if whole is None else whole


def _column(run: Run, attention: CrossAttentionAtStep | None) -> list[str]:
    status, whole = run.status, _whole(run)
    scored = attention if attention is not None and attention.is_scored else None
    return [
        "–" if whole is None else show.percent(whole),
        "–" if scored is None else show.percent(scored.share),
        "–" if scored is None else f"{scored.aer:.3f}",
        f"{_parameters(run.id, run):,}",
        show.duration(status.seconds) if status.seconds else "–",
        f"{1000 * status.seconds / status.step:.1f} ms" if status.step else "–",
    ]


@st.cache_data(show_spinner=False, max_entries=64)
def _parameters(run_id: str, _run: Run) -> int:
    return n_parameters(_run.experiment)


def _maps(
    chosen: Study, contest: Mapping[str, Run], attentions: dict[str, CrossAttentionAtStep | None]
) -> None:
    st.header(_("Attention maps"), anchor=False)
    sentences = next((s for run in contest.values() if (s := alignment.probe_sentences(run))), [])
    index = 0
    if sentences:
        index = (
            st.selectbox(
                _("Unseen sentence"),
                range(len(sentences)),
                format_func=sentences.__getitem__,
                key=f"{_SENTENCE}-{next(iter(contest.values())).experiment.task.name}",
            )
            or 0
        )
    columns = st.columns(len(contest), gap="medium")
    for column, (name, run) in zip(columns, contest.items(), strict=True):
        with column:
            st.subheader(_(chosen.arm(name).label), anchor=False)
            _model(name, run, attentions[name], index)


def _model(name: str, run: Run, attention: CrossAttentionAtStep | None, index: int) -> None:
    status = run.status
    st.markdown(f"{run_words.badge(status)} {run_words.progress(status)}")
    if attention is None or index >= len(attention.weights):
        st.info(_("Maps appear after the first step."), icon=":material/hourglass_empty:")
    else:
        _map(name, run, attention, index)
    st.latex(LATEX[name])
    st.caption(_(QUERIES[name]))
    with st.container(horizontal=True):
        for page, label, icon in (
            ("attention", _("Open all maps"), ":material/grid_on:"),
            ("train", _("Curves"), ":material/show_chart:"),
            ("walk", _("Walk"), ":material/directions_walk:"),
        ):
            query = {"run": run.id}
            st.page_link(page_table.path_of(page), label=label, icon=icon, query_params=query)


def _map(name: str, run: Run, attention: CrossAttentionAtStep, index: int) -> None:
    names, rows = attention.names[index], attention.rows[index]
    shown = MapView(
        attention.weights[index][attention.head],
        rows.names,
        names.key,
        query_title=_(rows.title),
        key_title=_("source token"),
        query_words=tuple(map(_, rows.words)),
    )
    figure = head_map(shown)
    outline_cells(figure, attention.truth[index], ORANGE)
    sentences = [_("Step {step}; no true alignment.", step=f"{attention.step:,}")]
    if attention.is_scored:
        share = _(
            "Step {step}, {n} sentences: {share} of the attention is on true words "
            "(uniform: {even}).",
            step=f"{attention.step:,}",
            n=len(attention.weights),
            share=show.percent(attention.share),
            even=show.percent(attention.even),
        )
        sentences = [share, _(conclusions.strongest_cells(*attention.strongest_true))]
    if len(attention.weights[index]) > 1:
        sentences.append(_("Head {head}.", head=attention.head + 1))
    show.figure(figure, " ".join(sentences), key=f"before-map-{name}")


def length(_made: Made) -> None:
    """Show recorded times against length, or measure them on this machine."""
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(paragraph("before/times", batch=BATCH, d=alignment.RNN_WIDTH))
    if right.button(
        _("Measure now"),
        type="primary",
        icon=":material/timer:",
        key="before-measure",
        width="stretch",
    ):
        _rounds()[0] += 1  # of this server, so that each press measures again
        st.session_state[_ROUND] = _rounds()[0]
    if st.session_state.get(_ROUND) is None:
        seconds, torch, day = recorded_times()
        show.prose(paragraph("before/recorded-times", day=day, torch=torch))
        _figures(1000 * seconds)
        return
    futures = _futures(st.session_state[_ROUND])
    is_open = any(not future.done() for future in futures.values())
    st.fragment(_measured, run_every=TICK if is_open else None)(st.session_state[_ROUND], is_open)


def _measured(number: int, was_open: bool) -> None:
    futures = _futures(number)
    done = {
        key: future.result()
        for key, future in futures.items()
        if future.done() and not future.cancelled() and future.exception() is None
    }
    if was_open and all(future.done() for future in futures.values()):
        state.rerun()  # once: redrawn, it no longer polls
    if was_open:
        st.progress(
            len(done) / len(futures), _("Measuring {n} of {all} …", n=len(done), all=len(futures))
        )
    whole = [n for n in LENGTHS if all((name, n) in done for name in STYLES)]
    if not whole:
        return
    times = {name: [1000 * done[name, n] for n in whole] for name in STYLES}
    _figures(pd.DataFrame(times, index=whole), is_whole=not was_open)


def _figures(frame: pd.DataFrame, *, is_whole: bool = True) -> None:
    """Draw milliseconds by length (rows) and model (columns)."""
    lengths = frame.index.tolist()
    table = TIMES.table(frame.assign(ratio=frame["additive"] / frame["one-head"], length=lengths))
    across = {
        "title": _("source and target tokens, each"),
        "type": "log",
        "tickvals": lengths,
        "ticktext": [f"{n:.0f}" for n in lengths],
    }
    times = chart(
        table,
        x="length",
        y={name: _(TRANSLATION_RACE.arm(name).label) for name in frame},
        looks=[looks_of(STYLES[name]) for name in frame],
        across=across,
        up={"title": _("ms per step"), "type": "log", "dtick": "D2", "tickformat": "~g"},
    )
    ratios = chart(
        table,
        x="length",
        y={"ratio": _("RNN / Transformer, 1 head")},
        looks=[looks_of(STYLES["additive"])],
        across=across,
        up={"title": _("ratio"), "rangemode": "tozero"},
        reference={"y": 1},
    )
    show.beside(
        (times, _("Which line is steeper? Both axes are logarithmic."), "before-times"),
        (ratios, _("RNN time over Transformer time. Dotted: equal."), "before-ratios"),
    )
    if is_whole:
        _sentence(frame)


def _sentence(frame: pd.DataFrame) -> None:
    first, last = frame.index[0], frame.index[-1]
    if first == last:
        return
    ratio = frame["additive"] / frame["one-head"]
    growth = {name: frame[name][last] / frame[name][first] for name in ("additive", "one-head")}
    about = alignment.about_growth(last // first, growth["additive"], growth["one-head"])
    if not article.guess(about, "growth", of=f"{growth}"):
        return
    show.prose(
        paragraph(
            "before/growth",
            a=first,
            b=last,
            n=last // first,
            rnn=f"{growth['additive']:.1f}",
            one=f"{growth['one-head']:.1f}",
            low=f"{ratio[first]:.1f}",
            high=f"{ratio[last]:.1f}",
        )
    )
    st.caption(paragraph("before/theory"))


def _futures(number: int) -> dict[tuple[str, int], Future[float]]:
    return {
        (name, length): run_time.step_time(name, length, number)
        for length in LENGTHS
        for name in STYLES
    }


@st.cache_resource(show_spinner=False)
def _rounds() -> list[int]:
    return [0]


FIGURES: Figures = {
    "history": equation,
    "linear": linear,
    "contest": contest,
    "length": length,
    "presets": presets,
}
GUESSES = ("alignment", "growth")
"""The questions that figures ask before they show the answer."""

if __name__ == "__main__":
    article.draw("before", FIGURES)
