"""One example before and after: the answer and the attention."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components.effects import Tree, moving
from pages.i18n import _, ngettext
from pages.knockouts import outcome
from pages.knockouts.outcome import Measurement
from pages.ui import show, state
from pages.ui.model import answer
from pages.ui.settings import glosses
from tfm_core.config import ImageTaskConfig
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.map_view import map_view
from tfm_core.inspect.knockouts.example import example_without, most_moved, moved
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.plots.heads import attention as plots
from tfm_core.probe.items import is_language
from tfm_core.probe.labels import kinds_of, modules_by_kind
from tfm_core.runs.run import Run

MEAN = -1


def answers(run: Run, off: Sequence[Part], measurement: Measurement) -> None:
    """Show the answer with everything on, and without the parts that are off."""
    before, after = _both(run, off, measurement)
    item = before.item
    lines: list[Tree] = []
    if "src_text" in item:
        title = _("Prompt") if is_language(item) else _("Source")
        lines.append(_line(title, str(item["src_text"])))
    truth = _truth(run, before)
    if truth:
        tokens = () if before.answer is None else item.get("truth", item.get("tgt", ()))
        lines.append(_line(_("Truth"), answer.written(run.experiment, tokens, truth)))
    lines.append(_answer_line(run, _("Everything on"), before))
    if off:
        lines.append(_answer_line(run, _without(off), after))
    if before.probabilities is not None:
        lines.append(answer.classes(run.experiment, after if off else before))
    moving({0: ["div", "", *lines]}, 0, animation="", key="knockouts-answers")
    outcome.last_in_words(run, off, measurement)


def attention(run: Run, off: Sequence[Part], measurement: Measurement) -> None:
    before, after = _both(run, off, measurement)
    kinds = modules_by_kind(run.experiment)
    changed = most_moved(before, after)
    if off and changed is None:
        st.caption(
            _(
                "No attention map changes: no later attention reads what is off, or less than "
                "0.05% of it moves."
            )
        )
        return
    kind, layer, head = _chosen(
        run, off, kinds, changed, len(next(iter(before.attention.values())))
    )
    module = kinds[kind][layer]
    columns = st.columns(2, gap="medium")
    titles = (_("Everything on"), _without(off))
    pairs = zip(columns, (before, after), titles, ("before", "after"), strict=True)
    for column, example, title, name in pairs:
        view = map_view(
            run.experiment,
            example,
            kind=kind,
            layer=layer,
            head=None if head == MEAN else head,
            say=_,
            glosses=glosses.shown(run.experiment),
        )
        with column:
            show.figure(
                plots.head_map(view, title, state.theme()),
                _moved(before, after, module, head) if name == "after" else "",
                key=f"knockouts-map-{name}",
            )
    gone = [part for part in off if part.module == module and part.kind in ("head", "sublayer")]
    if gone and (head == MEAN or any(part.head in (None, head) for part in gone)):
        st.caption(
            _("A part that is off still computes its weights; only later attention changes.")
        )


def _without(off: Sequence[Part]) -> str:
    return ngettext("Without it", "Without them", len(off))


def _both(run: Run, off: Sequence[Part], measurement: Measurement) -> tuple[Example, Example]:
    before = example_without(run, measurement.example, (), measurement.how, measurement.n)
    return before, example_without(run, measurement.example, off, measurement.how, measurement.n)


def _chosen(
    run: Run,
    off: Sequence[Part],
    kinds: dict[str, list[str]],
    changed: str | None,
    n_heads: int,
) -> tuple[str, int, int]:
    """Choose kind, layer and head of the attention maps.

    changed: the module that changed most, shown first; None if nothing is off: then the last layer.
    """
    first_kind = next((kind for kind, names in kinds.items() if changed in names), list(kinds)[-1])
    names = kinds[first_kind]
    first_layer = len(names) - 1 if changed is None else names.index(changed)
    mark = f"{run.id}-{changed}-{'+'.join(part.code for part in off)}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = first_kind
        if len(kinds) > 1:
            kind = st.selectbox(
                _("Attention"),
                list(kinds),
                index=list(kinds).index(first_kind),
                format_func=lambda name: _(kinds_of(run.experiment)[name].label),
                key=f"knockouts-kind-{mark}",
                width=280,
            )
        layers = range(len(kinds[kind]))
        layer = min(first_layer, layers[-1])
        if len(layers) > 1:
            layer = st.segmented_control(
                _("Layer"),
                list(layers),
                default=layer,
                format_func=lambda i: str(i + 1),
                required=True,
                key=f"knockouts-layer-{mark}-{kind}",
            )
        head = MEAN
        if n_heads > 1:
            head = st.segmented_control(
                _("Head"),
                [MEAN, *range(n_heads)],
                default=MEAN,
                format_func=lambda i: _("Mean") if i == MEAN else str(i + 1),
                required=True,
                key=f"knockouts-head-{mark}",
            )
    return kind, int(layer), int(head)


def _moved(before: Example, after: Example, module: str, head: int) -> str:
    share = moved(before, after, module, None if head == MEAN else head)
    return _("{share} of the attention moved to other keys, on average.", share=show.percent(share))


def _truth(run: Run, example: Example) -> str:
    label = example.item.get("label")
    if label is not None:
        return str(run.experiment.task_as(ImageTaskConfig).facts.class_names[label])
    return str(example.item.get("tgt_text", ""))


def _line(who: str, what: str | Tree) -> Tree:
    return ["p", "", ["span", "who", f"{who} "], ["strong", "", what]]


def _answer_line(run: Run, who: str, example: Example) -> Tree:
    text, is_right = _answer(run, example)
    line = _line(who, answer.written(run.experiment, example.answer or (), text))
    if is_right is None:
        return line
    mark = _(" ✓ right") if is_right else _(" ✗ wrong")
    return [*line, ["span", "good" if is_right else "bad", mark]]


def _answer(run: Run, example: Example) -> tuple[str, bool | None]:
    """Return the answer and whether it is right, None where there is no truth."""
    item = example.item
    if example.probabilities is not None:
        names = run.experiment.task_as(ImageTaskConfig).facts.class_names
        best = int(example.probabilities.argmax())
        share = show.percent(float(example.probabilities[best]))
        words = _("{name}, with {share}", name=names[best], share=share)
        return words, None if item.get("label") is None else best == item["label"]
    tokens = tuple(example.answer or ())
    if is_language(item) or run.experiment.task.is_opened:
        return example.answer_text or "–", None
    return example.answer_text or "–", tokens == tuple(item.get("truth", item["tgt"]))
