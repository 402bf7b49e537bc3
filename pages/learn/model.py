"""The whole model: the article on what a Transformer is made of, from input to answer."""

from __future__ import annotations

import streamlit as st

from pages.app import article, show, state
from pages.app.article import Figures, Made
from pages.app.model import model_parts
from pages.app.runs import shown_run
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.parameter_table import most_in, parameter_table
from tfm_core.plots.model.walk import treemap
from tfm_core.runs.run import Run
from tfm_core.trace.equations import equations
from tfm_core.trace.parts import about_most, code_of


def _run() -> Run:
    """Return the run in sight. Raises ValueError where there is none, or it is damaged."""
    run = shown_run.run_to_show(shown_run.MODELS)
    if run is None:
        raise ValueError(N_("There is no model yet: train one."))
    if run.problem is not None:
        raise ValueError(run.problem)
    return run


def picture(made: Made) -> None:
    """Draw the model; a press opens a part, which ``equation`` shows."""
    run = _run()
    known = of_experiment(run.experiment, run.meta.name)
    drawn, under = st.container(), st.container()
    made.update(run=run, known=known, part=model_parts.open_part(known, drawn, key="whole"))
    with under:
        st.caption(_("{run}, drawn from its settings.", run=escape(run.meta.name)))
        _link("walk", _("Walk through it with numbers"), run)


def equation(made: Made) -> None:
    """Show the equations of the open part beside its code."""
    if "part" not in made:
        return
    part, known = made["part"], made["known"]
    st.caption(" · ".join(map(_, part.rows)))
    by_module = equations(known.model, known.shape)
    left, right = st.columns(2, gap="medium")
    with left:
        for name in part.equations:
            st.markdown(f"**{_(by_module[name].title)}** · {_(by_module[name].source)}")
            st.latex(_(by_module[name].latex))
    with right:
        code = code_of(part, known.model, known.shape)
        st.code(code, language="python", height=300, wrap_lines=True)
    _link("build", _("The whole model as one file"), made["run"])


def shares(_made: Made) -> None:
    """Ask where most parameters are, then draw all of them as areas."""
    run = _run()
    known = of_experiment(run.experiment, run.meta.name)
    table = parameter_table(known.model, known.shape)
    if not article.guess(about_most(table.folded), "most", of=f"{known.model} {known.shape}"):
        return
    words = paragraph("architecture/treemap", most=_(most_in(table.folded)))
    show.figure(treemap(table.folded, table.total, state.theme()), words, key="whole-shares")
    _link("parameters", _("Every parameter, counted"), run)


def steps(_made: Made) -> None:
    """Lead to the walk through the model of the paper, step by step."""
    from tfm_core.trace.trace import book_index

    label = _("The {n} steps, with the sizes of a textbook", n=len(book_index()))
    show.link("walk", label, {"walk-source": "book"})


def _link(page: str, label: str, run: Run) -> None:
    show.link(page, label, state.run_query(page, run.id))


FIGURES: Figures = {"picture": picture, "equation": equation, "shares": shares, "steps": steps}
GUESSES = ("most",)
"""The question that a figure asks before it shows the answer."""

if __name__ == "__main__":
    article.draw("model", FIGURES)
