"""The worst errors first; each card links to the example on Attention."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as html

import streamlit as st

from pages.i18n import _
from pages.mistakes import controls
from pages.mistakes.link import Cell
from pages.ui import show
from pages.ui.navigation import page_table
from pages.ui.typed import escape
from tfm_core.inspect.errors import examples
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.examples import least_sure, worst_answers, worst_texts
from tfm_core.inspect.errors.groups import of_examples
from tfm_core.inspect.errors.scores import OTHERS, in_cell
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.plots.texts.writing import marked
from tfm_core.runs.run import Run

_MAX_PICTURES, _MAX_TEXTS = 24, 20
_WIDTH = 114  # pixels of a card with a picture
_HEIGHT = 372


def gallery(
    run: Run, answers: Answers, numbers: Sequence[int], cell: Cell | None, order: str
) -> None:
    """Draw the worst errors, or those of a cell. numbers: of the classes that are shown."""
    chosen = None if cell is None else in_cell(answers, numbers, cell)
    is_text = answers.written is not None
    worst = worst_texts if is_text else worst_answers
    places = worst(answers, "sure" if order == "sure" else "loss", chosen)
    if cell is not None:
        _only(answers, cell, 0 if chosen is None else len(chosen))
    is_picture = examples.picture_of(run, 0) is not None
    most = _MAX_PICTURES if is_picture and not is_text else _MAX_TEXTS
    all_right = cell is None and not len(places)
    if all_right:
        places = least_sure(answers, most)
    st.caption(_how_many(answers, len(places), most, cell, order, all_right=all_right))
    shown = places[:most].tolist()
    with st.container(height=_HEIGHT, border=False, key="mistakes-gallery"):
        if answers.is_language:
            _surprises(run, answers, shown)
        elif is_text:
            _texts(run, answers, shown)
        elif answers.unit == "label":
            for place in shown:
                example = int(answers.example[place])
                with st.container(border=True, gap=None, key=f"mistake-card-{example}"):
                    st.markdown(escape(examples.source_of(run, answers, example)))
                    _link(run, example, _single(answers, place))
        else:
            _pictures(run, answers, shown)


def _how_many(
    answers: Answers, n: int, most: int, cell: Cell | None, order: str, *, all_right: bool
) -> str:
    if all_right:
        return _("No mistakes; the {n} least confident answers.", n=min(n, most))
    values = {"n": min(n, most), "all": f"{n:,}"}
    if cell is None and answers.is_language:
        if order == "sure":
            return _("The {n} most confident of {all} wrong tokens.", **values)
        return _("The {n} of {all} tokens with the highest loss.", **values)
    if n > most:
        return _("The worst {n} of {all}.", **values)
    if n == 1:
        return _("The only one.")
    return _("All {n} of them.", n=f"{n:,}") if n else ""


def _only(answers: Answers, cell: Cell, n: int) -> None:
    truth, predicted = (
        _("others") if number == OTHERS else _name(answers, number) for number in cell
    )
    values = {"truth": truth, "predicted": predicted, "n": f"{n:,}"}
    is_right, is_text = cell[0] == cell[1] != OTHERS, answers.written is not None
    if is_text and is_right:
        words = _("**{truth}**, right: {n} tokens", **values)
    elif is_text:
        words = _("**{truth}** taken for **{predicted}**: {n} tokens", **values)
    elif is_right:
        words = _("**{truth}**, right: {n}", **values)
    else:
        words = _("**{truth}** taken for **{predicted}**: {n}", **values)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(words, width="content")
        st.button(
            _("All errors"),
            icon=":material/filter_alt_off:",
            key="mistakes-all",
            on_click=controls.choose_cell,
            args=(None,),
        )


def _name(answers: Answers, number: int) -> str:
    is_named = 0 <= number < len(answers.names)
    return escape(marked(answers.names[number])) if is_named else str(number)


def _pictures(run: Run, answers: Answers, places: Sequence[int]) -> None:
    with st.container(horizontal=True, gap="small"):
        for place in places:
            example = int(answers.example[place])
            with st.container(width=_WIDTH, gap=None, key=f"mistake-card-{example}"):
                _picture(run, example)
                _link(run, example, _single(answers, place))


def _single(answers: Answers, place: int) -> str:
    values = {
        "truth": f"**{_name(answers, int(answers.truth[place]))}**",
        "predicted": _name(answers, int(answers.predicted[place])),
        "confidence": show.percent(float(answers.confidence[place])),
    }
    if answers.truth[place] == answers.predicted[place]:
        return _("{truth}, right · {confidence}", **values)
    return _("{truth}, not {predicted} · {confidence}", **values)


def _picture(run: Run, example: int) -> None:
    picture = examples.picture_of(run, example)
    if picture is not None:
        name = html(_("Validation picture {n}", n=example + 1))
        st.html(f'<img class="mistake" alt="{name}" src="{picture_url(picture)}">')


def _texts(run: Run, answers: Answers, places: Sequence[int]) -> None:
    assert answers.written is not None
    _is_right, losses = of_examples(answers)
    for example in places:
        written, difference = answers.written[example], examples.first_difference(answers, example)
        with st.container(border=True, gap=None, key=f"mistake-card-{example}"):
            if source := written.item.get("src_text", ""):
                st.markdown(escape(source))
            else:
                _picture(run, example)
            if difference is None:
                confidence = show.percent(written.confidence)
                words = _("Right; lowest token confidence {confidence}", confidence=confidence)
            else:
                at, predicted, true = difference
                st.markdown(f":orange[✗ {escape(written.predicted) or '–'}]")
                words = _(
                    "Token {at}: {predicted}, not {true} · {loss} nats a token",
                    at=at + 1,
                    predicted=escape(predicted) or "<eos>",
                    true=escape(true) or "<eos>",
                    loss=f"{losses[example]:.2f}",
                )
            st.markdown(f":green[✓ {escape(written.truth)}]")
            _link(run, example, words)


def _surprises(run: Run, answers: Answers, places: Sequence[int]) -> None:
    for place in places:
        before, text = examples.surprise_of(run, answers, place)
        with st.container(border=True, gap=None, key=f"mistake-card-{place}"):
            token = _name(answers, int(answers.truth[place]))
            st.markdown(f"{escape(before)} **:orange[{token}]**")
            words = _(
                "{loss} nats; expected {predicted} with {confidence}",
                loss=f"{float(answers.loss[place]):.2f}",
                predicted=_name(answers, int(answers.predicted[place])),
                confidence=show.percent(float(answers.confidence[place])),
            )
            _to_attention(run, words, {"text": text})


def _link(run: Run, example: int, label: str) -> None:
    _to_attention(run, label, {"own": f"validation-{example + 1}"})


def _to_attention(run: Run, label: str, query: dict[str, str]) -> None:
    st.page_link(
        page_table.path_of("attention"),
        label=label,
        query_params={"run": run.id, "example": "own", **query},
    )
