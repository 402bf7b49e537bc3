"""Translate: a trained model writes, step by step, and lets itself be led."""

from __future__ import annotations

import streamlit as st

from pages.translate import beam, beside, choice, desk, given, how
from pages.translate import run as translate_run
from pages.translate.link import BEAM, BESIDE
from pages.ui import show, view_link
from tfm_core.runs.run import Run


def page() -> None:
    show.header("translate")
    run = translate_run.chosen()
    if run is not None:
        _write(run)


def _write(run: Run) -> None:
    problems = choice.receive(run)
    translate_run.note(run)
    try:
        source = given.source(run)
        row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
        with row:
            method = how.method(source)
        for problem in problems:
            view_link.warn(problem)
        if method == BEAM:
            beam.part(source, run, row)
        elif method == BESIDE:
            beside.part(source, row)
        else:
            desk.part(source, run, row, method)
    except ValueError as error:
        show.problem(error)
    choice.say()


page()
