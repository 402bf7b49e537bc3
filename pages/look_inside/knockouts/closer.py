"""Which parts are off, heads one by one, and what decides between the answers to two inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure
from streamlit.delta_generator import DeltaGenerator

from pages.app import show
from pages.app.address import view
from pages.app.address.parameters import InvalidValue, Number, Written
from pages.app.model.answer import example_name
from pages.app.navigation.terms import marked
from pages.app.typed import check_length, escape
from pages.components.live_figure import live_figure
from pages.components.pickers import Thumbnail, thumbnails
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention.maps import MapView, map_view
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.knockouts import causes as core
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.causes import Causes, Pair, can_change
from tfm_core.inspect.knockouts.engine import patches_of
from tfm_core.inspect.knockouts.measure import PATTERNS, Replacement, example_without
from tfm_core.inspect.knockouts.parts import (
    STACKS,
    Part,
    first_to_go,
    head_of,
    heads_of,
    kind_of_attention,
    name_of,
    part_of,
    parts_of,
    short_name,
)
from tfm_core.plots.chart import chart
from tfm_core.plots.heads import attention as plots
from tfm_core.plots.heads.attention import head_map, short
from tfm_core.plots.palette import BLUE, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run

SCOPE = "knockouts"
MAX_TEXT = 200
MAX_EDITED = 50
"""Tokens of a map that is edited cell by cell."""
MAX_ROWS = 8
MAX_BARS = 12
NOTHING = "none"
_REQUESTED, _OFF, _PAST = "knockouts-requested", "knockouts-off", "knockouts-past"
_MAX_PAST = 50
Codes = tuple[str, ...]


class Knocked(NamedTuple):
    """Parts of a run's model that are off, the newest last, and what stands in for them.

    example: of the run, from 0. n: the first validation examples, on which it is measured; 0 where
    none has a known answer.
    """

    run: Run
    off: tuple[Part, ...]
    example: int
    how: Replacement
    n: int

    @property
    def question(self) -> tuple[object, ...]:
        """What a measurement of all heads depends on: another one is made only on request."""
        return self.run.id, checkpoint_mark(self.run), self.how, self.n


def what_is_off(experiment: Experiment) -> Written[Codes]:
    """Return the parts of a model that are off, in the address; at first, one that it misses."""
    codes = [part.code for part in parts_of(experiment)]

    def read(text: str) -> Codes:
        if text == NOTHING:
            return ()
        named = dict.fromkeys(text.split(","))
        known = tuple(code for code in named if code in codes)
        if len(known) < len(named):
            rule = _("parts of this model, such as {part}, or none", part=codes[0])
            raise InvalidValue(rule, known or None)
        return known

    return Written(
        "off",
        reader=read,
        writer=lambda off: ",".join(off) or NOTHING,
        first=(first_to_go(experiment).code,),
        key=_OFF,
        always_in_url=True,
    )


def parts_off(run: Run) -> tuple[Part, ...]:
    """Return the parts of a run that are off; keep those that another run has, too."""
    parts = {part.code: part for part in parts_of(run.experiment)}
    parameter = what_is_off(run.experiment)
    before: Codes = st.session_state.get(_OFF, ())
    if before:
        fitting = tuple(code for code in before if code in parts)
        st.session_state[_OFF] = fitting or parameter.first
    return tuple(parts[code] for code in view.one(view.held(parameter), "off", "knockouts"))


def switch(code: str) -> None:
    now: Codes = st.session_state.get(_OFF, ())
    change(tuple(other for other in now if other != code) if code in now else (*now, code))


def change(off: Codes = ()) -> None:
    past: list[Codes] = st.session_state.get(_PAST, [])
    st.session_state[_PAST] = [*past, st.session_state.get(_OFF, ())][-_MAX_PAST:]
    st.session_state[_OFF] = off


def undo() -> None:
    *st.session_state[_PAST], st.session_state[_OFF] = st.session_state[_PAST]


def can_undo() -> bool:
    return bool(st.session_state.get(_PAST))


def enqueue(*question: object) -> None:
    """Ask for a measurement that takes seconds."""
    st.session_state.setdefault(_REQUESTED, set()).add(question)


def is_requested(*question: object) -> bool:
    return question in st.session_state.get(_REQUESTED, set())


def _one_head(heads: Mapping[str, Part], first: str) -> Any:
    """Offer heads by their codes in a list."""
    names = {code: name_of(head) for code, head in heads.items()}
    return view.choice(N_("Head"), names, first, is_list=True)


def _by_code(run: Run) -> dict[str, Part]:
    """Return the heads of a model by what links call them."""
    return {head.code: head for head in heads_of(run.experiment)}


def measured(knocked: Knocked, place: DeltaGenerator) -> pd.DataFrame:
    """Return the importance of each head; show progress in ``place``."""
    n_heads = len(heads_of(knocked.run.experiment))
    progress = partial(_, N_("Head {done} of {all}, on {n} examples …"), n=knocked.n)
    return _last(measure.importances(knocked.run, knocked.how, knocked.n), place, n_heads, progress)


def _last(
    measuring: Iterator[int | pd.DataFrame],
    place: DeltaGenerator,
    total: int,
    progress: Callable[..., str],
) -> pd.DataFrame:
    """Show how far a measurement is, in words; return the table that it ends with."""
    for done in measuring:
        if isinstance(done, int):
            place.progress(min(1.0, done / total), progress(done=done, all=total))
    place.empty()
    assert isinstance(done, pd.DataFrame)
    return done


@dataclass(frozen=True)
class Pruning:
    """What is drawn of a model that loses its heads."""

    drawn: str = view.choice(
        N_("What is drawn"),
        {"accuracy": N_("Accuracy"), "loss": N_("Loss")},
        look={"label_visibility": "collapsed"},
    )


def pruning(knocked: Knocked) -> None:
    """Show how a model fares while its heads go, the least important first."""
    n_heads = len(heads_of(knocked.run.experiment))
    total = measure.n_measurements(n_heads)
    if not is_requested("pruning", *knocked.question):
        show.prose(
            paragraph(
                "knockouts/remove-heads",
                orders=measure.RANDOM_ORDERS,
                measurements=n_heads + total,
                n=f"{knocked.n:,}",
            )
        )
        st.button(
            _("Remove the heads"),
            type="primary",
            icon=":material/content_cut:",
            key="knockouts-prune",
            on_click=enqueue,
            args=("pruning", *knocked.question),
        )
        return
    place = st.empty()
    order = measured(knocked, place).sort_values("rise", kind="stable")["part"].tolist()
    progress = partial(_, N_("Measurement {done} of {all} …"))
    curves = _last(
        measure.prune(knocked.run, order, knocked.how, knocked.n), place, total, progress
    )
    spare, *by_chance = measure.heads_to_spare(curves)
    caption = paragraph(
        "knockouts/heads-to-spare",
        n=curves["removed"].max(),
        spare=spare,
        accuracy=show.percent(curves["accuracy"].iloc[0]),
        orders=len(by_chance),
        by_chance="–".join(str(n) for n in dict.fromkeys((min(by_chance), max(by_chance)))),
        examples=f"{curves['n'].iloc[0]:,}",
    )
    figure = plots.pruning_curve(curves, view.ask(Pruning, SCOPE).drawn)
    show.figure(figure, caption, key=f"knockouts-pruning-{knocked.run.id}")


@dataclass(frozen=True)
class Pattern:
    """The head that gets a pattern, and which to begin with."""

    head: str = _one_head({}, "")
    pattern: str = view.choice(N_("Pattern"), PATTERNS, "even")


def pattern(knocked: Knocked) -> None:
    """Let the visitor choose a head and its pattern, and show what changes."""
    run, heads = knocked.run, _by_code(knocked.run)
    if not can_change(run):
        st.info(_("This needs a Transformer that answers with words or a class."))
        return
    first = head_of(run.experiment, knocked.off).code
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = view.ask(Pattern, SCOPE, head=_one_head(heads, first))
    head = heads[chosen.head]
    example = example_without(run, knocked.example, (), knocked.how, knocked.n)
    kind = kind_of_attention(run.experiment, head)
    shown = map_view(run.experiment, example, kind=kind, layer=head.layer, head=head.head, say=_)
    rows = measure.pattern_of(chosen.pattern, shown.weights, shown.allowed)
    left, right = st.columns(2, gap="medium")
    with left:
        if max(rows.shape) <= MAX_EDITED:
            key = f"knockouts-pattern-{run.id}-{knocked.example}-{head.code}-{chosen.pattern}"
            rows = _edited(rows, shown, key)
        else:
            st.caption(_("Cells can be edited up to {n} tokens.", n=MAX_EDITED))
        _answers(measure.answers_with_pattern(run, knocked.example, head, rows))
    with right:
        show.figure(
            head_map(replace(shown, weights=rows)),
            _("Rows are queries, columns are keys."),
            key="knockouts-drawn",
        )


def _edited(begun: Floats, shown: MapView, key: str) -> Floats:
    """Let the visitor change cells; return the rows, which sum to 1."""
    columns = [str(n) for n in range(len(shown.key))]
    frame = pd.DataFrame(measure.cells_of(begun, shown.allowed), columns=columns)
    frame.insert(0, "query", list(shown.query))
    number = st.column_config.NumberColumn
    title = st.column_config.TextColumn(
        _(shown.query_title), disabled=True, pinned=True, width="small"
    )
    keys = {
        column: number(name, format="%.2f", min_value=0, step=0.01, width=76)
        for column, name in zip(columns, shown.key, strict=True)
    }
    edited = st.data_editor(
        frame,
        hide_index=True,
        column_config={"query": title, **keys},
        height=min(410, 38 + 35 * len(frame)),
        key=key,
    )
    st.caption(paragraph("knockouts/pattern"))
    numbers = edited[columns].to_numpy(dtype=float, na_value=np.nan)
    return measure.edited_pattern(begun, numbers, shown.allowed, shown.query, shown.key)


def _answers(answers: pd.DataFrame) -> None:
    st.markdown(
        _(
            "**{n} of {total} answers change.** At most {share} of the probability moves.",
            n=int((answers["before"] != answers["after"]).sum()),
            total=len(answers),
            share=show.percent(float(answers["moved"].max())),
        )
    )
    rows = [
        [
            f"{at + 1} {escape(row.place)}" if row.place else _("the whole input"),
            f"{escape(row.before)} · {show.percent(row.before_share)}",
            f"{escape(row.after)} · {show.percent(row.after_share)}",
        ]
        for at, row in answers.nlargest(MAX_ROWS, "moved").sort_index().iterrows()
    ]
    show.facts(rows, [_("Answers at"), _("Own attention"), _("This pattern")])


def _typed(label: str, help: str, first: str = "", of: str = "") -> Any:
    """Offer to change a text. first: as the example has it; of: which it is."""
    look = {"placeholder": first} if first else {}
    return view.text(label, first, MAX_TEXT, help=help, look=look, of=of)


_text = partial(_typed, N_("Input"), N_("Clear it to use the example."))
_changed = partial(
    _typed,
    N_("Changed input"),
    N_("Use as many tokens as the input. Clear it for a suggestion."),
)


def _other(last: int = 98, first: int = 0, of: str = "") -> Any:
    return view.held(Number("", low=0, high=last, first=first, offset=1), of=of)


@dataclass(frozen=True)
class Inputs:
    """Two inputs: texts, or the example and another picture."""

    text: str = _text()
    changed: str = _changed()
    other: int = _other()


def causes(run: Run, index: int) -> None:
    """Show which positions, heads and layers decide between two inputs' answers."""
    if not can_change(run):
        st.info(_("This needs a Transformer that answers with words or a class."))
        return
    if run.probe().images is None:
        pair: Pair = _two_texts(run, index)
        if core.is_slow(run, str(pair[0])) and not _is_patched(run, pair):
            return
    else:
        pair = (index, _other_picture(run, index))
    result = core.causes_of(run, pair)
    first, second = map(escape, result.answers)
    message = _(
        "The answer is **{first}**; with the change, it is **{second}**.",
        first=first,
        second=second,
    )
    if result.written:
        message = _(
            "After “{written}” the answer is **{first}**; with the change, it is **{second}**.",
            written=escape(result.written),
            first=first,
            second=second,
        )
    st.markdown(message)
    show.prose(paragraph("knockouts/causes"))
    if result.patches is None:
        n_passes, n_tokens, n_weights = core.cost_of(run)
        st.info(
            _(
                "Patching would take minutes ({n} runs of {tokens} tokens through {weights} "
                "weights). These two need few runs.",
                n=f"{n_passes:,}",
                tokens=n_tokens,
                weights=f"{n_weights:,}",
            )
        )
    else:
        for stack, (values, names) in result.streams().items():
            figure = plots.restored_map(
                values,
                [_(name) for name in names],
                result.tokens[stack],
                column_title=_("{stack} position", stack=_(STACKS[stack])),
            )
            message = _(
                "Restored by patching one position before or after a layer. 1 is the whole answer."
            )
            show.figure(figure, message, key=f"knockouts-stream-{stack}")
    left, right = st.columns(2, gap="medium")
    with left:
        depths = [_("embedding"), *(_("layer {n}", n=n) for n in range(1, len(result.lens)))]
        lines = dict(zip(("first", "second"), map(short, result.answers), strict=True))
        show.figure(
            chart(result.lens, x="depth", y=lines, ticks=depths, height=260, top=8),
            _("Logit lens: the probability of both answers after each layer, for the first input."),
            key="knockouts-lens",
        )
        if result.patches is not None:
            _heads(result)
    with right:
        _direct(result)
    if result.patches is not None:
        _paths(run, pair, result.strongest_head().code)
        show.code(patches_of)


def _two_texts(run: Run, index: int) -> tuple[str, str]:
    """Ask for both inputs; at first an example, and one changed token."""
    example, of = core.text_of(run, index), f"{run.id}-{index}"

    def change(asked: Inputs) -> Any:
        text = check_length(asked.text, MAX_TEXT) or example
        return _changed(core.suggested(run, text), f"{of}-{text}")

    texts = {"text": _text(example, of), "changed": view.by(change)}
    chosen = view.ask(Inputs, SCOPE, columns=2, hidden=("other",), **texts)
    text = chosen.text or example
    return text, check_length(chosen.changed, MAX_TEXT) or core.suggested(run, text)


def _other_picture(run: Run, index: int) -> int:
    """Ask for another picture of the run's examples; return its number, from 0."""
    probe = run.probe()
    assert probe.images is not None
    last, of = len(probe.items) - 1, f"{run.id}-{index}"
    other = _other(last, core.other_picture(run, index), of)
    chosen = view.ask(Inputs, SCOPE, hidden=("text", "changed"), other=other).other
    pictures = zip(probe.images, probe.items, strict=True)
    thumbnails(
        [
            Thumbnail(picture, example_name(run.experiment, item, number))
            for number, (picture, item) in enumerate(pictures, 1)
        ],
        chosen=chosen,
        label=_("Other picture"),
        on_pick=lambda picked: st.session_state.update({f"{SCOPE}-{of}-other": picked}),
        key="knockouts-other-pictures",
    )
    return chosen


def _is_patched(run: Run, pair: Pair) -> bool:
    """Offer what takes seconds; return whether it was asked for."""
    question = ("causes", run.id, checkpoint_mark(run), pair)
    if is_requested(*question):
        return True
    st.button(
        _("Patch it ({n} runs)", n=f"{core.cost_of(run, str(pair[0]))[0]:,}"),
        type="primary",
        icon=":material/play_arrow:",
        key="knockouts-patch",
        on_click=enqueue,
        args=question,
    )
    return False


def _heads(result: Causes) -> None:
    values, attentions = result.heads()
    figure = plots.restored_map(
        values,
        [_(short_name(each)) for each in attentions],
        [str(n + 1) for n in range(values.shape[1])],
        column_title=_("head"),
    )

    def follow(row: int, head: int) -> None:
        st.session_state[f"{SCOPE}-head"] = part_of(attentions[row].module, head).code

    caption = _("Restored by patching one head at all positions. Click a head to follow its paths.")
    live_figure(figure, key="knockouts-patched-heads", name=caption, on_pick=follow)
    st.caption(marked(caption))


def _direct(result: Causes) -> None:
    if result.effects is None:
        st.caption(_("There are no direct effects, because more layers follow the last block."))
        return
    caption = _(
        "How much each part adds to {first} over {second}, {total} in total.",
        first=escape(result.answers[0]),
        second=escape(result.answers[1]),
        total=f"{sum(effect for _part, effect in result.effects):+.2f}",
    )
    show.figure(_bars(result.parts(MAX_BARS)), caption, key="knockouts-direct")


def _bars(parts: pd.DataFrame) -> Figure:
    """Draw what parts do: what helps is blue, what harms orange."""
    return chart(
        parts,
        "bars",
        x="effect",
        y="part",
        orientation="h",
        text="words",
        ticks=parts["name"].tolist(),
        looks=[{"colour": [BLUE if value >= 0 else VERMILION for value in parts["effect"]]}],
    )


def _paths(run: Run, pair: Pair, first: str) -> None:
    """Draw how the effect of a head reaches the answer. first: the one to begin with."""
    st.markdown(_("**The paths of a head to the answer**"))
    left, right = st.columns([5, 4], gap="medium")
    heads = _by_code(run)
    with right:
        head = heads[view.one(_one_head(heads, first), "head", SCOPE)]
        paths = core.paths_of_pair(run, pair, head)
        message = _(
            "The head restores **{total}** of “{answer}”: {direct} directly, {through} "
            "through later parts, {together} only in combination.",
            total=f"{paths.total:+.2f}",
            answer=escape(paths.answer),
            direct=f"{paths.direct:+.2f}",
            through=f"{paths.in_sum:+.2f}",
            together=f"{paths.together:+.2f}",
        )
        st.markdown(message)
        show.prose(paragraph("knockouts/paths"))
    with left:
        message = _("Restored through one later part alone, or directly.")
        show.figure(_bars(paths.parts(8)), message, key="knockouts-paths")
