"""The terms of the search: each leads to a page, as it is where the term is taught."""

from __future__ import annotations

from pkgutil import resolve_name

import pytest

from pages.ui import view_link
from pages.ui.page_table import PAGES
from pages.ui.terms import BY_SETTING, TERMS, Term
from tfm_core.presets import PRESETS


def test_no_two_terms_or_pages_share_a_name() -> None:
    names = [term.name for term in TERMS] + [page.title for page in PAGES.values()]
    assert len({name.casefold() for name in names}) == len(names)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_has_one_line_and_its_page_follows_its_link(term: Term) -> None:
    assert len(term.meaning) <= 80
    assert term.meaning.endswith(".")
    facts = PAGES[term.page]
    if not term.view:
        return
    if facts.name == "attention":  # which deeper parts there are is said by the run
        assert set(term.view) == {"deeper"}
        return
    view, sentences = view_link.read(resolve_name(facts.view), dict(term.view))
    assert not sentences
    assert view_link.write(view).items() <= dict(term.view).items()


def test_a_setting_is_taught_by_one_term_and_every_such_setting_exists() -> None:
    assert len(BY_SETTING) == sum(len(term.settings) for term in TERMS)
    known = {
        name
        for preset in PRESETS.values()
        for part in preset.experiment.model_dump().values()
        if isinstance(part, dict)
        for name in part
    }
    assert set(BY_SETTING) <= known
