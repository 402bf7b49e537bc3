"""What surrounds every page: navigation, the strip with run, search and links, and notices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages import i18n
from pages.components import addresses
from pages.components.buttons import (
    Link,
    Meaning,
    SearchEntry,
    copy_link,
    meanings,
    search,
)
from pages.components.effects import announce_end, arrival, embedded
from pages.components.language import language_switch
from pages.components.presenter import presenter
from pages.i18n import PAGES_DIR, _, language
from pages.server import streamlit_internals
from pages.ui import show, state, typed
from pages.ui.accounts import login, visitors
from pages.ui.address import view_link
from pages.ui.lessons import open_lesson
from pages.ui.navigation import page_table, terms, ticks
from pages.ui.navigation.page_table import PageFacts
from pages.ui.navigation.terms import BY_KEY, TERMS, Term
from pages.ui.runs import run_words, runs_access
from pages.ui.typed import escape
from tfm_core.lessons.catalogue import catalogue
from tfm_core.lessons.lesson import Lesson
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

ICON = str(PAGES_DIR / "content" / "icon.svg")
LOGO = str(PAGES_DIR / "content" / "logo.svg")
PRESENT_QUERY = "present"
"""What a link says that opens a page in presenter mode."""

_TICK = 3.0  # seconds


def navigation() -> st.Page:
    sections: dict[str, list[st.Page]] = {_(title): [] for title in page_table.SECTIONS.values()}
    for facts in page_table.PAGES.values():
        entry = st.Page(
            facts.path,
            title=_(facts.title),
            icon=facts.icon,
            url_path=facts.url_path or None,
            default=not facts.url_path,
        )
        sections[_section(facts)].append(entry)
    page = st.navigation(sections, position="hidden" if _is_embedded() else "top")
    ticks.mark_change()
    if state.set_page(page.url_path):
        view_link.leave()
    terms.begin()
    show.begin()
    open_lesson.follow_link()
    if not _is_embedded():
        # Streamlit marks pages, not sections; a section without a title has an entry a page
        number = page_table.place_in_bar(page_table.at(page.url_path)) + 1
        section = f"[data-testid='stTopNav'] > :nth-child({number}) [data-testid='stTopNavSection']"
        look = "font-weight: 600; box-shadow: inset 0 -2px 0 light-dark(#1f6aa8, #6db3ea)"
        st.html(f"<style>{section} {{ {look} }}</style>")
    return page


def _is_embedded() -> bool:
    """Return whether another site shows the page in a frame, which has no bar and no strip."""
    return bool(st.context.is_embedded)


def _section(facts: PageFacts) -> str:
    return _(page_table.SECTIONS[facts.section])


def strip() -> DeltaGenerator | None:
    """Draw the current run and the search; return the place for ``share``, if there is one."""
    state.keep_in_link()
    run_id = state.current_run_id()
    _speak(is_shown=False)  # before what is drawn in the language
    if _is_embedded():
        _arrive(run_id)
        embedded(key="embedded")
        return None
    st.logo(LOGO, icon_image=ICON, size="large")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="strip"):
        with st.container(width="stretch", key="strip-run"):
            if run_id is None:
                runs = page_table.PAGES["runs"]
                st.page_link(runs.path, label=_("Choose a run"), icon=runs.icon)
            else:
                run = runs_access.store().get(run_id)
                is_active = run.status.is_active
                ticks = _TICK if is_active else None
                st.fragment(_current_run, run_every=ticks)(run, was_active=is_active)
                if state.page() != "train" and not run.problem:  # whose stage says it
                    announce_end(run.id, run_words.ended(run), key="announce-end")
        _search()
        _arrive(run_id)
        if PRESENT_QUERY in view_link.query():
            state.note_presentation()
            # who leaves the mode and reloads is not in it again
            view_link.put({PRESENT_QUERY: None})
        presenter(state.page(), n_links=state.n_presentations(), key="presenter")
        has_choice = len(i18n.languages()) > 1
        if not visitors.providers() and not has_choice:
            return st.container(width="content", key="strip-share")
        with st.container(
            horizontal=True,
            vertical_alignment="center",
            gap="small",
            width="content",
            key="strip-end",
        ):
            if has_choice:
                _speak(is_shown=True)
            if visitors.providers():
                login.control()
            return st.container(width="content", key="strip-share")


def _speak(*, is_shown: bool) -> None:
    """Tell the document its language; let the reader choose another where there is one."""
    language_switch(
        is_shown=is_shown,
        path=addresses.root() or "/",
        on_choose=_change_language,
        key="language-choice" if is_shown else "document-language",
    )


def _change_language(code: str) -> None:
    i18n.speak(code)
    view_link.put({i18n.QUERY: code})
    streamlit_internals.send_choices_anew()


def _arrive(run_id: str | None) -> None:
    """Scroll to the top of another page, or of another run on Train."""
    place = state.page()
    arrival(f"{place}?{run_id}" if place == "train" else place, key="arrival")


def lead_to_game() -> None:
    """Redirect a link to a hidden suspect to Find the bug."""
    linked = state.linked_run_id()
    if linked is None:
        return
    try:
        run = runs_access.store().get(linked)
    except RunNotFound:
        return
    if not runs_access.is_hidden(run):
        return
    state.set_current_run(None)
    state.notify(_("“{name}” hides a bug: find it to see the settings.", name=run.meta.name))
    healthy = next((other for other in visitors.listed() if runs_access.is_round(other, run)), None)
    query = {} if healthy is None else {"pair": f"{healthy.id}.{run.id}"}
    if state.page() != "find-the-bug":
        st.switch_page(page_table.path_of("find-the-bug"), query_params=query)


def notices() -> None:
    """Show notices, and what in the link could not be followed.

    Their container exists even when empty. Otherwise the page below would move when they disappear,
    and the browser would recreate open lists and half-typed fields.
    """
    with st.container():
        unknown = state.unknown_run_in_link()
        if unknown is not None:
            st.warning(
                _("The run in this link is not here or was deleted."), icon=":material/link_off:"
            )
        if i18n.unknown_in_link() is not None:
            st.warning(
                _("The app does not speak the language of this link."), icon=":material/link_off:"
            )
        if why := open_lesson.problem():
            st.warning(escape(why), icon=":material/link_off:")
        for sentence in typed.let_go():
            st.warning(sentence, icon=":material/content_cut:")
        for sentence in state.take_notices():
            st.info(escape(sentence), icon=":material/info:")


def share(place: DeltaGenerator | None) -> None:
    """Draw the links; call it after the page, which may still change them."""
    if place is None:
        return
    with place:
        st.fragment(_share)()  # a QR code must not rerun the page


def _share() -> None:
    note = _("This link does not contain your pasted text; a link to the run, or its export, does.")
    run_id = state.current_run_id()
    run = None
    if run_id is not None and page_table.at(state.page()).shows_run:
        found = runs_access.store().get(run_id)
        run = found if found.problem is None else None
    has_text = (
        state.has_pasted_text()
        if run is None
        else bool(run.experiment.task.model_dump().get("text"))
    )
    copy_link(_links(run), note=note if has_text else "", key="copy-link")


def _links(in_sight: Run | None) -> list[Link]:
    """Return the links, the one to what is in sight first."""
    page = page_table.at(state.page())
    run_id = state.current_run_id()
    if in_sight is not None and in_sight.experiment.task.is_foreign:  # nothing here trains it
        link = state.run_link(in_sight.id)
        return [Link(_("this run"), _("Opens this run."), link, is_here=page.shows_run)]
    if in_sight is None:
        name, href = _("the configuration"), state.configuration_link()
    else:
        name, href = _("this run’s configuration"), state.run_configuration_link(in_sight)
    configuration = Link(name, _("Opens Train with it."), href)
    if run_id is None:
        links = [] if page.name == "train" else [_page_link()]
        return [*links, configuration]
    opens = _("Opens this run.")
    run = Link(_("this run"), opens, state.run_link(run_id), is_here=page.shows_run)
    return [*([] if page.shows_run else [_page_link()]), run, configuration]


def _page_link() -> Link:
    return Link(_("this page"), _("Opens this page as it is."), state.page_link(), is_here=True)


def _current_run(run: Run, *, was_active: bool) -> None:
    status = run.status
    if was_active and not status.is_active:
        state.draw_anew()  # once: drawn anew, it no longer ticks
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="current-run"):
        if state.page() != "train":  # which has them in its title and on its stage
            st.markdown(f"**{escape(run.meta.name)}**", width="content")
            st.markdown(run_words.badge_of(run), width="content")
            if not run.problem:
                if status.is_active:
                    st.progress(status.progress, width=90)
                st.caption(run_words.progress(status), width="content")
        if run.problem:
            st.caption(escape(_(run.problem)), width="content")
            return
        for facts in page_table.PAGES.values():
            if facts.follows_run and (run.experiment.task.has_model or not facts.needs_model):
                label, query = _(facts.follows_run), state.run_query(facts.name, run.id)
                st.page_link(facts.path, label=label, icon=facts.icon, query_params=query)


def _search() -> None:
    """Draw the search, and open the chosen page."""
    lessons = tuple(catalogue().lessons.values())
    places: list[tuple[str, Mapping[str, str]]] = [
        *((name, {}) for name in page_table.PAGES),
        *((term.page, term.view) for term in TERMS),
        *(("lessons", {open_lesson.LESSON_QUERY: lesson.id}) for lesson in lessons),
    ]
    entries = (*_entries(language(), state.address("", {})), *map(_lesson, lessons))
    chosen = search(entries, key="search")
    if chosen is not None:
        name, view = places[chosen]
        st.switch_page(page_table.path_of(name), query_params=dict(view))


def finish() -> None:
    """Lead on, and keep what was done; call it after the page."""
    show.lead_on()
    view_link.settle()
    ticks.mark_change()
    ticks.keep()


def explain() -> None:
    """Explain the marked terms of the page, and open where one can be seen."""
    seen = meanings(_meanings(language(), state.address("", {})), key="terms")
    if seen is not None:
        term = BY_KEY[seen]
        st.switch_page(page_table.path_of(term.page), query_params=dict(term.view))


@lru_cache(maxsize=32)
def _meanings(_spoken: str, _home: str) -> Mapping[str, Meaning]:
    return {key: _meaning(term) for key, term in BY_KEY.items()}


def _meaning(term: Term) -> Meaning:
    facts = page_table.PAGES[term.page]
    where = _("See it: {page}", page=_(facts.title))
    href = state.address(facts.url_path, term.view)
    return Meaning(_(term.name), " ".join(term.sentences), where, href)


@lru_cache(maxsize=32)
def _entries(_spoken: str, _home: str) -> tuple[SearchEntry, ...]:
    """Return what is found of pages and terms, by the language and the address of the app."""
    return (*map(_entry, page_table.PAGES.values()), *map(_term, TERMS))


def _entry(facts: PageFacts) -> SearchEntry:
    intro = ""
    with suppress(FileNotFoundError):  # a text that is missing costs its own page alone
        intro = re.sub(r"[*`]", "", show.words(facts.name).intro)  # text, not Markdown
    about = _("Page") + (f" · {intro}" if intro else "")
    return SearchEntry(
        _(facts.title), about, state.address(facts.url_path, {}), _english(facts.title)
    )


def _lesson(lesson: Lesson) -> SearchEntry:
    page, words = page_table.PAGES["lessons"], open_lesson.words(lesson)
    href = state.address(page.url_path, {open_lesson.LESSON_QUERY: lesson.id})
    return SearchEntry(words.title, f"{_(page.title)} · {words.goal}", href, lesson.words().title)


def _term(term: Term) -> SearchEntry:
    facts = page_table.PAGES[term.page]
    about = f"{term.sentences[0]} → {_(facts.title)}"
    also = f"{_english(term.name)} {term.also}".strip()
    return SearchEntry(_(term.name), about, state.address(facts.url_path, term.view), also)


def _english(name: str) -> str:
    """Return a name that finds its entry beside the translated one."""
    return "" if language() == i18n.ENGLISH else str(name)
