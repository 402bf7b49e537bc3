"""An example and its answer at each step: in a line, token by token, or class by class.

The text follows the animation of the head grid, so it is made for every step at once. Glosses below
translated words have one switch for all pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import streamlit as st

from pages.app import show
from pages.components.effects import Tree, moving
from pages.i18n import _, ngettext
from tfm_core.choices.config import Experiment
from tfm_core.data.text.english_korean import glosses_of, language_of
from tfm_core.inspect.attention.example import Example
from tfm_core.probe.items import is_language
from tfm_core.sentences import whole_percent

MAX_CLASSES, N_LIKELIEST = 40, 8
"""Of more classes than this, so many are shown."""


def example_name(experiment: Experiment, item: Mapping[str, Any], number: int) -> str:
    """Return the name of a probe's example in one line; number: from 1."""
    task, label = experiment.task, item.get("label")
    if task.picture_shape is not None:
        if task.class_names and label is None:
            return _("Picture {n}", n=number)
        name = item["tgt_text"] if label is None else task.class_names[label]
        return _("Picture {n}: {name}", n=number, name=name)
    source = f"{number}: {item['src_text']}"
    is_known = task.data_kind == "stream" or experiment.training is not None
    return f"{source} → {item['tgt_text']}" if is_known else source


def verdict(experiment: Experiment, examples: Sequence[Example], step: int, *, name: str) -> None:
    """Show source, truth and the model's answer in one line.

    examples: the same one at every step of the film of that name.
    """
    trees = {each.step: line(experiment, each) for each in examples}
    moving(trees, step, animation=name, key="attention-verdict")


def details(experiment: Experiment, examples: Sequence[Example], step: int, *, name: str) -> None:
    """Show the answer token by token, or the probability of each class."""
    trees = {each.step: _details(experiment, each) for each in examples}
    moving(trees, step, animation=name, key="attention-answer")


def line(experiment: Experiment, example: Example) -> Tree:
    """Return source, truth and answer of an example in a few words."""
    if example.probabilities is None and example.answer is None:
        is_opened = experiment.training is None
        text = str(example.item["src_text"]) if is_opened else _("No saved prediction.")
        return ["p", "who", text]
    return ["div", "line", *input_trees(experiment, example), *answer_trees(experiment, example)]


def _details(experiment: Experiment, example: Example) -> Tree:
    words = _("Answer at step {step}", step=f"{example.step:,}")
    if experiment.training is None:
        words = _("Answer")
    title: Tree = ["h2", "", words]
    if example.probabilities is not None:
        return ["div", "", title, classes(experiment, example)]
    if example.answer is None:
        return ["div", "", title]
    if getattr(experiment.task, "labels", "") and example.confidence is not None:
        shares = example.confidence[: len(example.answer)].tolist()
        return ["div", "", title, _listed(list(zip(example.answer, shares, strict=True)))]
    return ["div", "", title, _tokens(example, is_known=_has_truth(experiment, example))]


def input_trees(experiment: Experiment, example: Example) -> list[Tree]:
    """Return what a model reads, unless it is a picture, and the truth if there is one."""
    item = example.item
    if example.probabilities is not None:
        label = item.get("label")
        return [] if label is None else [_labelled(_("Truth"), experiment.task.class_names[label])]
    if _continues(experiment, item):
        parts = [_labelled(_("Prompt"), item["src_text"])]
        if "tgt_text" in item:
            parts.append(_labelled(_("True continuation"), item["tgt_text"]))
        return parts
    read = language_of(experiment)
    parts = [_labelled(_("Source"), item["src_text"], read)] if "src_text" in item else []
    if _has_truth(experiment, example):
        truth = written(experiment, item.get("truth", item["tgt"]), item["tgt_text"])
        parts.append(_labelled(_("Truth"), truth))
    return parts


def answer_trees(experiment: Experiment, example: Example, who: str = "") -> list[Tree]:
    """Return a model's answer, and whether it is right if that is known. who: which model's."""
    item = example.item
    if example.probabilities is not None:
        names = experiment.task.class_names
        best = int(example.probabilities.argmax())
        share = show.percent(float(example.probabilities[best]))
        words = _("{name}, with {share}", name=names[best], share=share)
        is_right = best == item.get("label")
        mark = _mark(_("right") if is_right else _("wrong"), is_right=is_right)
        known = [] if item.get("label") is None else [mark]
        return [_labelled(who or _("Model"), words), *known]
    text, model = example.answer_text or "–", example.answer or ()
    if _continues(experiment, item):
        return [_labelled(who or _("The model writes"), text)]
    parts = [_labelled(who or _("Model"), written(experiment, model, text))]
    if not _has_truth(experiment, example):
        return parts
    truth = item.get("truth", item["tgt"])
    if tuple(model) == tuple(truth):
        if item.get("goes_on"):
            words = _("wrong: only <eos> is missing")
            return [*parts, _mark(words, is_right=False)]
        return [*parts, _mark(_("right"), is_right=True)]
    right = sum(a == b for a, b in zip(model, truth, strict=False))
    words = ngettext(
        "{right} of {n} token right",
        "{right} of {n} tokens right",
        len(truth),
        right=right,
        n=len(truth),
    )
    return [*parts, _mark(words, is_right=False)]


def _continues(experiment: Experiment, item: Mapping[str, Any]) -> bool:
    """Return whether a model writes on, so that no one answer is right."""
    return is_language(item) and not getattr(experiment.task, "labels", "")


def _labelled(who: str, what: str | Tree, language: str | None = None) -> Tree:
    return ["p", "", ["span", "who", f"{who} "], [_tag("strong", language), "", what]]


def _tag(name: str, language: str | None) -> str:
    return name if language is None else f"{name}:{language}"


def written(experiment: Experiment, tokens: Sequence[str], text: str) -> Tree:
    """Return a target as text, or while glosses are shown token by token with them above."""
    known = glosses_of_run(experiment)
    if not known or not tokens:
        return ["span", "", text]
    above = _tag("rt", language_of(experiment))
    return ["span", "glossed", *(_glossed(token, known.get(token, ""), above) for token in tokens)]


def _glossed(token: str, gloss: str, above: str) -> Tree:
    return ["ruby", "", ["span", "", token], [above, "", gloss]] if gloss else ["span", "", token]


def _mark(words: str, *, is_right: bool) -> Tree:
    return ["p", "good" if is_right else "bad", f"{'✓' if is_right else '✗'} {words}"]


def _has_truth(experiment: Experiment, example: Example) -> bool:
    """Return whether one answer is right: a text may go on in many ways, and to a model that was
    trained elsewhere nobody knows the answers.
    """
    item = example.item
    return "tgt_text" in item and not (is_language(item) or experiment.training is None)


def _tokens(example: Example, *, is_known: bool) -> Tree:
    item = example.item
    truth = tuple(item.get("truth", item["tgt"])) if is_known else ()
    written = example.answer or ()
    sure = () if example.confidence is None else example.confidence[: len(written)].tolist()
    heads = [_("Model"), *([_("Truth"), ""] if is_known else []), _("Confidence")]
    top: list[Tree] = [["th", "", name] for name in heads]
    rows: list[Tree] = [["tr", "", *top]]
    for model, true, share in zip_longest(written, truth, sure):
        row: Tree = ["tr", "", ["td", "", model or ""]]
        if is_known:
            is_right = model == true
            row += [
                ["td", "", true or ""],
                ["td", "good" if is_right else "bad", "✓" if is_right else "✗"],
            ]
        bar: Tree = [] if share is None else ["span", "bar", float(share), f"{share:.2f}"]
        row.append(["td", "", bar or ""])
        rows.append(row)
    return ["table", "", *rows]


def _listed(likeliest: Sequence[tuple[str, float]]) -> Tree:
    top: Tree = ["tr", "", ["th", "", _("Class")], ["th", "", _("Probability")]]
    rows: list[Tree] = [
        ["tr", "", ["td", "", name], ["td", "", ["span", "bar", share, show.percent(share)]]]
        for name, share in likeliest
    ]
    return ["table", "", top, *rows]


def classes(experiment: Experiment, example: Example) -> Tree:
    """Return the probability of each class as a bar, all in one row; of many, a list of some."""
    probabilities = example.probabilities
    assert probabilities is not None
    names = experiment.task.class_names
    best = int(probabilities.argmax())
    shown = list(range(len(names)))
    if len(shown) > MAX_CLASSES:
        shown = sorted(shown, key=lambda index: -float(probabilities[index]))[:N_LIKELIEST]
        return _listed([(names[index], float(probabilities[index])) for index in shown])
    columns: list[Tree] = []
    for index in shown:
        kind, share = "class best" if index == best else "class", float(probabilities[index])
        tower: Tree = ["span", "tower", share]
        columns.append(["div", kind, tower, names[index], ["small", "", whole_percent(share)]])
    return ["div", "classes", *columns]


_GLOSSES = "glosses"


def glosses_are_on(experiment: Experiment) -> bool:
    """Return whether to show them: by default where the browser speaks another language."""
    known = glosses_of(experiment)
    if known is None:
        return False
    chosen = st.session_state.get(_GLOSSES)
    if isinstance(chosen, bool):
        return chosen
    return not (st.context.locale or "").lower().startswith(known.language)


def switch_glosses(chosen: bool) -> None:
    """Keep the choice for this session."""
    st.session_state[_GLOSSES] = chosen


def glosses_of_run(experiment: Experiment) -> Mapping[str, str]:
    """Return the gloss of each target token; none while they are off or nothing is translated."""
    known = glosses_of(experiment)
    return {} if known is None or not glosses_are_on(experiment) else known.words


def gloss_switch(experiment: Experiment, *, key: str) -> None:
    """Draw the switch where an experiment has glosses."""
    if glosses_of(experiment) is None:
        return
    st.session_state[key] = glosses_are_on(experiment)
    st.toggle(
        _("Glosses"),
        key=key,
        on_change=lambda: switch_glosses(bool(st.session_state[key])),
    )
