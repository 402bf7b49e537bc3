"""What the model answered: its words beside the truth, or its probability for each class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.ui import show
from pages.ui.typed import escape
from tfm_core.config import Experiment, ImageTaskConfig
from tfm_core.inspect.attention.example import Example
from tfm_core.probe.continuation import is_language


def verdict(experiment: Experiment, example: Example) -> None:
    """Show source, truth and the model's answer in a few words."""
    with st.container(border=True, horizontal=True, gap="medium", vertical_alignment="center"):
        if example.probabilities is not None:
            _picture_verdict(experiment, example)
        elif example.answer is not None:
            _sentence_verdict(example)
        else:
            st.caption(_("No prediction was kept at this step."))


def details(experiment: Experiment, example: Example) -> None:
    """Show the answer token by token, or the probability of each class."""
    st.markdown(_("**Answer at step {step}**").format(step=f"{example.step:,}"))
    if example.probabilities is not None:
        _classes(experiment, example)
    elif example.answer is not None:
        _tokens(example)


def _sentence_verdict(example: Example) -> None:
    item = example.item
    if is_language(item):
        _continuation_verdict(example)
        return
    if "src_text" in item:
        _said(_("Source"), item["src_text"])
    truth = item.get("truth", item["tgt"]) if "tgt_text" in item else None
    if truth is not None:
        _said(_("Truth"), item["tgt_text"])
    _said(_("Model"), example.answer_text or "–")
    if truth is None:
        return
    written = example.answer or ()
    if tuple(written) == tuple(truth):
        _mark(_("right"), is_right=True)
        return
    right = sum(a == b for a, b in zip(written, truth, strict=False))
    words = _("{right} of {count} tokens right").format(right=right, count=len(truth))
    _mark(words, is_right=False)


def _continuation_verdict(example: Example) -> None:
    """Show a text, how it really goes on where that is known, and how the model continues it."""
    item = example.item
    _said(_("Prompt"), item["src_text"])
    if "tgt_text" in item:
        _said(_("True continuation"), item["tgt_text"])
    _said(_("The model writes"), example.answer_text or "–")


def _picture_verdict(experiment: Experiment, example: Example) -> None:
    assert example.probabilities is not None
    names = experiment.task_as(ImageTaskConfig).facts.class_names
    best = int(example.probabilities.argmax())
    label = example.item.get("label")
    if label is not None:
        _said(_("Truth"), names[label])
    share = show.percent(float(example.probabilities[best]))
    _said(_("Model"), _("{name}, with {share}").format(name=names[best], share=share))
    if label is not None:
        is_right = best == label
        _mark(_("right") if is_right else _("wrong"), is_right=is_right)


def _said(who: str, what: str) -> None:
    st.markdown(f":grey[{who}]  \n**{escape(what)}**", width="content")


def _mark(words: str, *, is_right: bool) -> None:
    colour, icon = ("green", "check") if is_right else ("orange", "close")
    st.markdown(f":{colour}-badge[:material/{icon}: {words}]", width="content")


def _tokens(example: Example) -> None:
    item = example.item
    is_known = "tgt_text" in item and not is_language(item)  # a text may go on in many ways
    truth = tuple(item.get("truth", item["tgt"])) if is_known else ()
    table = token_table(example.answer or (), truth, example.confidence)
    st.dataframe(
        table,
        hide_index=True,
        height=min(560, 38 + 35 * max(1, len(table))),
        column_config={
            "model": _("Model"),
            "truth": _("Truth") if is_known else None,
            "right": st.column_config.TextColumn("✓", width="small") if is_known else None,
            "confidence": st.column_config.ProgressColumn(
                _("Confidence"),
                help=_("The probability that the model gave to the token it wrote."),
                min_value=0,
                max_value=1,
                format="%.2f",
            ),
        },
    )


def token_table(
    written: tuple[str, ...], truth: tuple[str, ...], confidence: np.ndarray | None
) -> pd.DataFrame:
    """Return one row a token: what the model wrote, the truth, whether they agree, confidence."""
    rows = max(len(written), len(truth))
    model = [*written, *[""] * (rows - len(written))]
    true = [*truth, *[""] * (rows - len(truth))]
    sure = [None] * rows if confidence is None else [float(value) for value in confidence[:rows]]
    return pd.DataFrame(
        {
            "model": model,
            "truth": true,
            "right": ["✓" if a == b else "✗" for a, b in zip(model, true, strict=True)],
            "confidence": [*sure, *[None] * (rows - len(sure))],
        }
    )


def _classes(experiment: Experiment, example: Example) -> None:
    assert example.probabilities is not None
    names = experiment.task_as(ImageTaskConfig).facts.class_names
    st.dataframe(
        pd.DataFrame({"class": names, "probability": example.probabilities.astype(float)}),
        hide_index=True,
        height=38 + 35 * len(names),
        column_config={
            "class": _("Class"),
            "probability": st.column_config.ProgressColumn(
                _("Probability"), min_value=0, max_value=1, format="%.3f"
            ),
        },
    )
