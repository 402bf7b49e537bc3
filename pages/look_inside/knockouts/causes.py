"""What decides between the answers to two inputs: positions, heads, layers and paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
from pandas import DataFrame
from plotly.graph_objects import Figure

from pages.app import show
from pages.app.address import view
from pages.app.address.parameters import Number
from pages.app.model.answer import example_name
from pages.app.navigation.terms import marked
from pages.app.typed import escape, within
from pages.components.live_figure import live_figure
from pages.components.pickers import Thumbnail, thumbnails
from pages.i18n import N_, _, paragraph
from pages.look_inside.knockouts.closer import (
    MAX_BARS,
    SCOPE,
    by_code,
    enqueue,
    is_requested,
    one_head,
)
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.knockouts import causes as core
from tfm_core.inspect.knockouts.causes import Causes, Pair, can_change
from tfm_core.inspect.knockouts.parts import STACKS, part_of, short_name
from tfm_core.inspect.knockouts.patching import patches_of
from tfm_core.plots.chart import chart
from tfm_core.plots.heads import scores as plots
from tfm_core.plots.heads.attention import short
from tfm_core.plots.palette import BLUE, VERMILION
from tfm_core.runs.run import Run

MAX_TEXT = 200


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
    found = core.causes_of(run, pair)
    first, second = map(escape, found.answers)
    words = _(
        "The answer is **{first}**; with the change, it is **{second}**.",
        first=first,
        second=second,
    )
    if found.written:
        words = _(
            "After “{written}” the answer is **{first}**; with the change, it is **{second}**.",
            written=escape(found.written),
            first=first,
            second=second,
        )
    st.markdown(words)
    show.prose(paragraph("knockouts/causes"))
    if found.patches is None:
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
        for stack, (values, names) in found.streams().items():
            figure = plots.restored_map(
                values,
                [_(name) for name in names],
                found.tokens[stack],
                column_title=_("{stack} position", stack=_(STACKS[stack])),
            )
            words = _(
                "Restored by patching one position before or after a layer. 1 is the whole answer."
            )
            show.figure(figure, words, key=f"knockouts-stream-{stack}")
    left, right = st.columns(2, gap="medium")
    with left:
        depths = [_("embedding"), *(_("layer {n}", n=n) for n in range(1, len(found.lens)))]
        lines = dict(zip(("first", "second"), map(short, found.answers), strict=True))
        show.figure(
            chart(found.lens, x="depth", y=lines, ticks=depths, height=260, top=8),
            _("Logit lens: the probability of both answers after each layer, for the first input."),
            key="knockouts-lens",
        )
        if found.patches is not None:
            _heads(found)
    with right:
        _direct(found)
    if found.patches is not None:
        _paths(run, pair, found.strongest_head().code)
        show.code(patches_of)


def _two_texts(run: Run, index: int) -> tuple[str, str]:
    """Ask for both inputs; at first an example, and one changed token."""
    example, of = core.text_of(run, index), f"{run.id}-{index}"

    def change(asked: Inputs) -> Any:
        text = within(asked.text, MAX_TEXT) or example
        return _changed(core.suggested(run, text), f"{of}-{text}")

    texts = {"text": _text(example, of), "changed": view.by(change)}
    chosen = view.ask(Inputs, SCOPE, columns=2, hidden=("other",), **texts)
    text = chosen.text or example
    return text, within(chosen.changed, MAX_TEXT) or core.suggested(run, text)


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


def _heads(found: Causes) -> None:
    values, attentions = found.heads()
    figure = plots.restored_map(
        values,
        [_(short_name(each)) for each in attentions],
        [str(n + 1) for n in range(values.shape[1])],
        column_title=_("head"),
    )

    def follow(row: int, head: int) -> None:
        st.session_state[f"{SCOPE}-head"] = part_of(attentions[row].module, head).code

    words = _("Restored by patching one head at all positions. Click a head to follow its paths.")
    live_figure(figure, key="knockouts-patched-heads", name=words, on_pick=follow)
    st.caption(marked(words))


def _direct(found: Causes) -> None:
    if found.effects is None:
        st.caption(_("There are no direct effects, because more layers follow the last block."))
        return
    words = _(
        "How much each part adds to {first} over {second}, {total} in total.",
        first=escape(found.answers[0]),
        second=escape(found.answers[1]),
        total=f"{sum(effect for _part, effect in found.effects):+.2f}",
    )
    show.figure(_bars(found.parts(MAX_BARS)), words, key="knockouts-direct")


def _bars(parts: DataFrame) -> Figure:
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
    heads = by_code(run)
    with right:
        head = heads[view.one(one_head(heads, first), "head", SCOPE)]
        found = core.paths_of_pair(run, pair, head)
        words = _(
            "The head restores **{total}** of “{answer}”: {direct} directly, {through} "
            "through later parts, {together} only in combination.",
            total=f"{found.total:+.2f}",
            answer=escape(found.answer),
            direct=f"{found.direct:+.2f}",
            through=f"{found.in_sum:+.2f}",
            together=f"{found.together:+.2f}",
        )
        st.markdown(words)
        show.prose(paragraph("knockouts/paths"))
    with left:
        words = _("Restored through one later part alone, or directly.")
        show.figure(_bars(found.parts(8)), words, key="knockouts-paths")
