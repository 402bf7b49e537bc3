"""A session changes its language while it runs, on every page, and no other session does."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages import i18n
from pages.app.navigation import page_table
from pages.app.navigation.page_table import current_address
from tests.pages import pseudo
from tfm_core import languages
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.inspect.tensors.operations import OPERATIONS
from tfm_core.lessons import catalogue as lessons

WORDS = {"body", "label", "help", "placeholder", "options", "title", "caption", "text", "content"}
FLOOR = 0.95
"""Share of the sentences of a page that change with the language, at least."""
EXCEPTIONS = (  # what stays as it is in every language
    r"\d+: .*",  # the examples of a task
    r"\d+ · .*",  # a word of one
    r".*\n?:gray\[:material/subdirectory_arrow_right:\].*",  # a sample: what is read, what is said
    r"\*\*a three below a seven\*\*",
    r"Four shapes",  # the name of a set
    r"[A-Z][a-z ,]+\.",  # an example sentence of a task
    r"(Models|love|the|cat|n_heads|d_model|BERT-(base|large)|BART-base|T5-(small|base))",
    *(re.escape(known.label) for known in ARCHITECTURES.values()),  # names of published models
)
OF_PAGES = {
    "numbers": [re.escape(name) for name in OPERATIONS],
    "try": ["[a-z]+"],
}
"""Page -> what else stays as it is: names of functions are code, words of a task its data."""
CACHES = (i18n._languages, i18n._catalogue, lessons._catalogue)


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language")
    pseudo.write(folder, pseudo.bracketed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(languages, "FOLDER", folder)
        for cache in CACHES:
            cache.cache_clear()
        yield
    for cache in CACHES:
        cache.cache_clear()


def drawn(app: AppTest) -> list[str]:
    """Every text that a page shows, in order; how long ago something was may change meanwhile."""
    texts = [text for element in _elements(app._tree) for text in _texts(element.proto)]
    return [re.sub(r"\d+(\s\w+\sago)", r"n\1", text) for text in texts]


def _elements(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        if getattr(child, "proto", None) is not None:
            yield child
        if hasattr(child, "children"):
            yield from _elements(child)


def _texts(message: Any) -> Iterator[str]:
    if not hasattr(message, "ListFields"):
        return
    for field, value in message.ListFields():
        if isinstance(value, str):
            if field.name in WORDS:
                yield value
        elif field.name in WORDS and not hasattr(value, "ListFields"):
            yield from (one for one in value if isinstance(one, str))
        elif hasattr(value, "ListFields"):
            yield from _texts(value)


def is_sentence(text: str) -> bool:
    """Whether a person reads words there: no code, no formula, no number."""
    if text.lstrip().startswith(("<style", "$$")):
        return False
    plain = re.sub(r"`[^`]*`|\$[^$]*\$|:material/\w+:|<[^>]*>|:\w+\[|https?://\S+", " ", text)
    return len(re.findall(r"[A-Za-z]{3,}", plain)) > 0


def test_sessions_speak_apart_and_keep_their_language_from_page_to_page(language, open_page):
    one, other = open_page("runs/page.py", lang=pseudo.LANGUAGE), open_page("runs/page.py")
    assert one.title[0].value == "⟦Runs⟧"
    assert other.run().title[0].value == "Runs"
    del one.query_params["lang"]
    assert one.switch_page("home/page.py").run().title[0].value.startswith("⟦")


@pytest.mark.core(6)
@pytest.mark.parametrize("name", [*page_table.PAGES, *page_table.FINDINGS])
def test_page_changes_its_language_while_it_runs(name, language, recorded, open_page, monkeypatch):
    of_page, query = current_address(name, {})
    page = page_table.PAGES[of_page]
    query |= {"run": "recorded-korean"} if page.shows_run else {}
    app = open_page(page.file, **query)
    english = [text for text in drawn(app) if is_sentence(text)]
    while name == "mistakes" and app.get("progress"):  # it measures what it shows, once
        app.run()
        english = [text for text in drawn(app) if is_sentence(text)]
    assert not [text for text in english if "⟦" in text]
    app.query_params["lang"] = pseudo.LANGUAGE
    app.run()
    other = [text for text in drawn(app) if is_sentence(text)]
    may_stay = re.compile("|".join([*EXCEPTIONS, *OF_PAGES.get(name, [])]), re.DOTALL)
    kept = [text for text in other if not ({"⟦", "⟧"} & set(text) or may_stay.fullmatch(text))]
    assert 1 - len(kept) / len(other) >= FLOOR, kept
    # AppTest asks the page for the words of its options outside of the session
    monkeypatch.setattr(i18n, "DEFAULT", pseudo.LANGUAGE)
    app.query_params["lang"] = "en"
    app.run()
    again = [text.replace("lang=en&amp;", "") for text in drawn(app) if is_sentence(text)]
    assert again == english  # but for links, which say English where it is not the default
