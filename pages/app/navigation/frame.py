"""What surrounds every page: navigation, the strip with search and links, and notices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages import i18n
from pages.app import article, show, state, typed
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.navigation import page_table, terms, ticks
from pages.app.navigation.page_table import FINDING, FINDINGS, PageFacts
from pages.app.navigation.terms import BY_KEY, TERMS, Term
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.components import addresses
from pages.components.buttons import (
    Link,
    Meaning,
    SearchEntry,
    copy_link,
    meanings,
    search,
)
from pages.components.effects import arrival, embedded
from pages.components.language import language_switch
from pages.components.presenter import presenter
from pages.i18n import PAGES_DIR, _, language
from pages.server import streamlit_internals
from tfm_core import links, made_with
from tfm_core.choices.presets import PRESETS
from tfm_core.lessons.catalogue import catalogue
from tfm_core.lessons.lesson import Lesson
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.studies.bugs import bug_of

ICON = str(PAGES_DIR / "content" / "icon.svg")
LOGO = str(PAGES_DIR / "content" / "logo.svg")
PRESENT_QUERY = "present"
"""What a link says that opens a page in presenter mode."""


_LABEL = re.compile(r'\bview\.\w+\(\s*N_\("([^"]+)"')
"""The label of a field where a view declares it."""


def navigation() -> st.Page:
    """Put the places into the bar; return the page that the address names."""
    entries = []
    for place, (title, names) in page_table.PLACES.items():
        for name in names:
            facts = page_table.PAGES[name]
            is_first = name == names[0]
            entry = st.Page(
                facts.path,
                title=_(title if is_first else facts.title),
                url_path=facts.url_path or None,
                default=not facts.url_path,
                visibility="visible" if is_first and place != page_table.MENU else "hidden",
            )
            entries.append(entry)
    page = st.navigation(entries, position="hidden" if _is_embedded() else "top")
    ticks.mark_change()
    if state.set_page(page.url_path):
        view.forget_query()
    terms.begin()
    show.begin()
    open_lesson.follow_link()
    if not _is_embedded():
        # Streamlit marks a page in the bar, not the place of one that is not there
        number = list(page_table.PLACES).index(page_table.at(page.url_path).place) + 1
        place = f"[data-testid='stTopNav'] > :nth-child({number})"
        look = "font-weight: 600; box-shadow: inset 0 -2px 0 light-dark(#1f6aa8, #6db3ea)"
        st.html(f"<style>{place} {{ {look} }}</style>")
    return page


def _is_embedded() -> bool:
    """Return whether another site shows the page in a frame, which has no bar and no strip."""
    return bool(st.context.is_embedded)


def strip() -> DeltaGenerator | None:
    """Draw the search and the menu; return the place for ``share``, if there is one."""
    state.keep_in_link()
    run_id = state.current_run_id()
    _speak(is_shown=False)  # before what is drawn in the language
    if _is_embedded():
        _arrive(run_id)
        embedded(key="embedded")
        return None
    st.logo(LOGO, icon_image=ICON, size="large")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="strip"):
        _search()
        _arrive(run_id)
        if PRESENT_QUERY in view.query():
            state.note_presentation()
            # who leaves the mode and reloads is not in it again
            view.put_query({PRESENT_QUERY: None})
        presenter(state.page(), n_links=state.n_presentations(), key="presenter")
        if visitors.providers():
            visitors.login()
        with st.popover(_("Menu"), key="strip-menu"):
            _teach()
            if len(i18n.languages()) > 1:
                _speak(is_shown=True)
            return st.container()


@st.fragment  # the button, which presenter mode hears in the browser, reruns no page
def _teach() -> None:
    title, names = page_table.PLACES[page_table.MENU]
    st.markdown(f"**{_(title)}**")
    for name in names:
        page = page_table.PAGES[name]
        st.page_link(page.path, label=_(page.title), icon=page.icon)
    st.button(_("Present this page (key P)"), icon=":material/present_to_all:", key="present")


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
    view.put_query({i18n.QUERY: code})
    streamlit_internals.send_choices_anew()


def _arrive(run_id: str | None) -> None:
    """Lead to the title of another page, run on Train, challenge, figure, or task."""
    place, query = state.page(), view.query()
    task, figure = query.get(open_lesson.LESSON_QUERY, ""), query.get(article.FIGURE, "")
    title = ".st-key-page h1"
    if "." in task:
        title = ".st-key-task-bar h2"
    elif re.fullmatch(r"[a-z0-9-]+", figure):
        title = f":is(.st-key-figure-{figure}, [class*='st-key-figure-{figure}-'])"
    opened = {"train": run_id, "challenges": query.get("experiment", query.get("bug"))}
    arrival(
        f"{place}?{opened[place]}" if place in opened else place,
        f"{task} {state.n_jumps()}",
        title=title,
        key="arrival",
    )


def lead_to_game() -> None:
    """Redirect a link to a hidden suspect to the challenge to find its bug."""
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
    state.notify(_("Find the bug in “{name}” to see its settings.", name=run.meta.name))
    healthy = next((other for other in visitors.listed() if runs_access.is_round(other, run)), None)
    bug = healthy and bug_of(healthy.experiment, run.experiment)
    query = {"bug": str(bug.level), "pair": f"{healthy.id}.{run.id}"} if healthy and bug else {}
    if state.page() != "challenges":
        st.switch_page(page_table.path_of("challenges"), query_params=query)


def notices() -> None:
    """Show notices, and what in the link could not be followed.

    Their container exists even when empty. Otherwise the page below would move when they disappear,
    and the browser would recreate open lists and half-typed fields.
    """
    with st.container():
        unknown = state.unknown_run_in_link()
        if unknown is not None:
            view.warn(_("The run in this link is not here or was deleted."))
        if i18n.unknown_in_link() is not None:
            view.warn(_("The app is not available in the language of this link."))
        if why := open_lesson.problem():
            view.warn(why)
        for sentence in typed.drop_long_texts():
            st.warning(sentence, icon=":material/content_cut:")
        for sentence in state.pop_notices():
            st.info(escape(sentence), icon=":material/info:")


def share(place: DeltaGenerator | None) -> None:
    """Draw the links; call it after the page, which may still change them."""
    if place is None:
        return
    with place:
        st.fragment(_share)()  # a QR code must not rerun the page


def _share() -> None:
    note = _("This link leaves out your pasted text. Share the run or its export instead.")
    run_id = state.current_run_id()
    run = None
    if run_id is not None and page_table.at(state.page()).shows_run:
        found = runs_access.store().get(run_id)
        run = found if found.problem is None else None
    has_text = (
        bool(state.draft()["task"].get("text"))  # which links cannot contain
        if run is None
        else bool(run.experiment.task.model_dump().get("text"))
    )
    copy_link(_links(run), note=note if has_text else "", key="copy-link")


def _links(in_sight: Run | None) -> list[Link]:
    """Return the links, the one to what is in sight first."""
    page = page_table.at(state.page())
    run_id = state.current_run_id()
    if in_sight is not None and in_sight.experiment.training is None:
        link = state.run_link(in_sight.id)
        return [Link(_("this run"), _("Opens this run."), link, is_here=page.shows_run)]
    if in_sight is None:
        name, query = _("the configuration"), state.configuration_query(state.current_draft())
    else:
        name, meta = _("this run’s configuration"), in_sight.meta
        made = made_with.made_here(meta.device, meta.threads)
        preset = meta.preset if meta.preset in PRESETS else None
        query = links.to_link(in_sight.experiment.model_dump(), made=made, preset=preset)
    opens = _("Opens Train with this configuration.")
    configuration = Link(name, opens, state.address("train", query))
    if run_id is None:
        return [*([] if page.name == "train" else [_page_link()]), configuration]
    opens = _("Opens this run.")
    run = Link(_("this run"), opens, state.run_link(run_id), is_here=page.shows_run)
    return [*([] if page.shows_run else [_page_link()]), run, configuration]


def _page_link() -> Link:
    return Link(
        _("this page"),
        _("Opens this page with its current settings."),
        state.page_link(),
        is_here=True,
    )


def _search() -> None:
    """Draw the search, and open the chosen page."""
    lessons = tuple(catalogue().lessons.values())
    places: list[tuple[str, Mapping[str, str]]] = [
        *((name, {}) for name in page_table.PAGES),
        *((facts.name, {}) for facts in _fields().values()),
        *((term.page, term.view) for term in TERMS),
        *(("findings", {FINDING: name}) for name in FINDINGS),
        *(("challenges", {open_lesson.LESSON_QUERY: lesson.id}) for lesson in lessons),
    ]
    entries = (*_entries(language(), state.address("", {})), *map(_lesson, lessons))
    chosen = search(entries, key="search")
    if chosen is not None:
        state.jump(*places[chosen])


def finish() -> None:
    """Lead on, and keep what was done; call it after the page."""
    show.lead_on()
    view.mark_drawn()
    ticks.mark_change()
    ticks.keep()


def explain() -> None:
    """Explain the marked terms of the page, and open where one can be seen."""
    seen = meanings(_meanings(language(), state.address("", {})), key="terms")
    if seen is not None:
        term = BY_KEY[seen]
        state.jump(term.page, term.view)


@lru_cache(maxsize=32)
def _meanings(_spoken: str, _home: str) -> Mapping[str, Meaning]:
    return {key: _meaning(term) for key, term in BY_KEY.items()}


def _meaning(term: Term) -> Meaning:
    facts = page_table.PAGES[term.page]
    where = _("See it: {page}", page=_(facts.title))
    href = state.address(facts.url_path, term.view)
    return Meaning(term.name, term.meaning, where, href)


@lru_cache(maxsize=32)
def _entries(_spoken: str, _home: str) -> tuple[SearchEntry, ...]:
    """Return what is found of pages, fields and terms, by the language and the app's address."""
    return (
        *map(_entry, page_table.PAGES.values()),
        *(_field(label, facts) for label, facts in _fields().items()),
        *map(_term, TERMS),
        *map(_finding, FINDINGS),
    )


@cache
def _fields() -> Mapping[str, PageFacts]:
    """Return the pages of the fields that views declare, by label; those of one page alone.

    They are read from the sources: to import all pages takes seconds.
    """
    found: dict[str, list[PageFacts]] = {}
    for facts in page_table.PAGES.values():
        path = Path(facts.path)
        files = path.parent.glob("*.py") if path.name == "page.py" else [path]
        for label in set(_LABEL.findall("".join(file.read_text("utf-8") for file in files))):
            found.setdefault(label, []).append(facts)
    others = {
        *(facts.title for facts in page_table.PAGES.values()),
        *(term.english for term in TERMS),
    }
    return {
        label: pages[0] for label, pages in found.items() if len(pages) == 1 and label not in others
    }


def _field(label: str, facts: PageFacts) -> SearchEntry:
    href = state.address(facts.url_path, {})
    return SearchEntry(_(label), f"→ {_(facts.title)}", href, i18n.elsewhere(label))


def _entry(facts: PageFacts) -> SearchEntry:
    intro = ""
    with suppress(FileNotFoundError):  # a text that is missing costs its own page alone
        intro = re.sub(r"[*`]", "", show.words(facts.name).intro)  # text, not Markdown
    about = _("Page") + (f" · {intro}" if intro else "")
    also = f"{i18n.elsewhere(facts.title)} {facts.also}".strip()
    return SearchEntry(_(facts.title), about, state.address(facts.url_path, {}), also)


def _finding(name: str) -> SearchEntry:
    facts, texts, others = page_table.PAGES["findings"], show.words(name), []
    for code in i18n.languages():
        with i18n.speaking(code):
            others.append(show.words(name).title)
    href = state.address(facts.url_path, {FINDING: name})
    return SearchEntry(texts.title, f"{_(facts.title)} · {texts.intro}", href, " ".join(others))


def _lesson(lesson: Lesson) -> SearchEntry:
    page, words = page_table.PAGES["challenges"], open_lesson.words(lesson)
    href = state.address(page.url_path, {open_lesson.LESSON_QUERY: lesson.id})
    return SearchEntry(words.title, f"{_(page.title)} · {words.goal}", href, lesson.words().title)


def _term(term: Term) -> SearchEntry:
    facts = page_table.PAGES[term.page]
    about = f"{term.meaning} → {_(facts.title)}"
    return SearchEntry(term.name, about, state.address(facts.url_path, term.view), term.finding)
