"""Challenges: all of them as cards, or the open one with links back and to the next."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import streamlit as st

from pages.app import show
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.navigation import page_table, ticks
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from pages.learn.challenges import find, predict, reach
from pages.learn.challenges.challenge import Challenge
from tfm_core.lessons import catalogue
from tfm_core.studies.experiments import DEMONSTRATIONS

SCOPE = "challenges"
TITLES = {"predict": N_("Predict"), "find": N_("Find"), "reach": N_("Reach")}


@dataclass(frozen=True)
class Challenges:
    """The open experiment or bug; without one a lesson is open, or all are shown."""

    experiment: str = view.linked(DEMONSTRATIONS)
    bug: str = view.linked(find.LEVELS)


def page() -> None:
    chosen, lesson = view.ask(Challenges, SCOPE), open_lesson.current()
    if chosen.experiment:
        experiment = DEMONSTRATIONS[chosen.experiment]
        _head("predict", predict.challenge(experiment))
        predict.draw(experiment)
    elif chosen.bug:
        _head("find", find.challenge(chosen.bug))
        find.draw(chosen.bug)
    elif lesson is not None and lesson.over is None:  # a tour has no separate page
        _head("reach", reach.challenge(lesson))
        reach.draw(lesson)
    else:
        _gallery()


def _groups() -> dict[str, list[Challenge]]:
    lessons = catalogue.catalogue().lessons
    return {
        "predict": list(map(predict.challenge, DEMONSTRATIONS.values())),
        "find": list(map(find.challenge, find.LEVELS)),
        "reach": list(map(reach.challenge, lessons.values())),
    }


def _gallery() -> None:
    show.header("challenges")
    for group, challenges in _groups().items():
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.header(_(TITLES[group]), anchor=False, help=_how(group), width="content")
            st.caption(paragraph(f"challenges/{group}").partition("\n")[0], width="stretch")
        if group != "predict":
            with st.container(key=f"challenge-cards-{group}"):
                for challenge in challenges:
                    _card(challenge, escape(challenge.about))
            continue
        themes = groupby(challenges, lambda challenge: challenge.about)
        for number, (theme, of_theme) in enumerate(themes):
            with st.expander(theme), st.container(key=f"challenge-cards-{group}-{number}"):
                for challenge in of_theme:
                    _card(challenge)
    ticks.draw_map()
    reach.for_teachers()
    show.link("plan")


def _card(challenge: Challenge, about: str = "") -> None:
    _link(challenge, f"**{escape(challenge.title)}** {about} :small[{challenge.facts}]")


def _how(group: str) -> str:
    return paragraph(f"challenges/{group}").partition("\n")[2].strip()


def _link(challenge: Challenge, label: str, icon: str = "") -> None:
    st.page_link(
        page_table.path_of("challenges"),
        label=label,
        icon=f":material/{icon or challenge.icon}:",
        icon_position="right" if icon else "left",
        query_params=challenge.query,
    )


def _head(group: str, opened: Challenge) -> None:
    every = [challenge for challenges in _groups().values() for challenge in challenges]
    queries = [challenge.query for challenge in every]
    after = queries.index(opened.query) + 1 if opened.query in queries else len(every)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="page-title"):
        if st.button(
            _("All challenges"), icon=":material/grid_view:", type="tertiary", key="all-challenges"
        ):
            lesson = open_lesson.current()
            if lesson is not None and lesson.over is None:
                open_lesson.leave()
            st.switch_page(page_table.path_of("challenges"))
        st.title(escape(opened.title), anchor=False, help=_how(group), width="content")
        st.caption(f"{escape(opened.about)} · {opened.facts}", width="content")
        if after < len(every):
            with st.container(width="content", key="page-next"):
                title = _("Next **{title}**", title=escape(every[after].title))
                _link(every[after], title, "arrow_forward")


if __name__ == "__main__":
    page()
