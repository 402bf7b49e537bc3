"""The glossary: every term that the app teaches, once, and the page that shows it.

The search finds them, settings link to the pages that explain them, and texts of pages carry them:
``marked`` makes the first use of each on a page a link ``#term-softmax`` that explains itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import streamlit as st

from pages.i18n import CONTENT_DIR, _, language, languages, paragraph, speaking
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.record import Variant
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.reading import toml_of

ADDRESS = "#term-"
"""Begins the link of a marked term."""
_CLAIMS = "term-claims"


_VARIANTS: Mapping[str, Mapping[str, Variant]] = {
    "activations": ACTIVATIONS,
    "norms": NORMS,
    "optimisers": OPTIMISERS,
}


@dataclass(frozen=True, slots=True)
class Term:
    """A term and the page that teaches it, as ``content/terms.toml`` has it.

    key: of its name and its meaning, in ``texts/terms.md``. page: a name of
    ``page_table.PAGES``. view: what the page's address says besides. settings: the settings of an
    experiment that it explains. also: other words that find it. variants: whose labels find it,
    too. marked: the English words that are marked in texts, if not its name and the plural of that.
    variant: the registry entry that supplies its words, if any.
    """

    key: str
    page: str
    view: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    also: str = ""
    variants: str = ""
    marked: tuple[str, ...] | None = None
    variant: Variant | None = None

    @property
    def name(self) -> str:
        """Return what it is called, in the session's language."""
        return _(self.variant.label) if self.variant else self._lines[0]

    @property
    def english(self) -> str:
        """Return what it is called in English."""
        with speaking("en"):
            return self.name

    @property
    def finding(self) -> str:
        """Return the words that find it besides its name in the session's language."""
        names = []
        for code in languages():
            if code != language():
                with speaking(code):
                    names.append(self.name)
        labels = [variant.label for variant in _VARIANTS.get(self.variants, {}).values()]
        return " ".join([*names, *labels, self.also]).strip()

    @property
    def forms(self) -> tuple[str, ...]:
        name = self.english.casefold()
        return (name, f"{name}s") if self.marked is None else self.marked

    @property
    def meaning(self) -> str:
        """Return its meaning in the session's language."""
        return _(self.variant.help) if self.variant else self._lines[1]

    @property
    def _lines(self) -> list[str]:
        return paragraph(f"terms/{self.key}").splitlines()


def _read() -> Iterator[Term]:
    """Yield the terms of the file, those of each page beside one another, then positions."""
    found = toml_of((CONTENT_DIR / "terms.toml").read_text("utf-8"))
    for key, facts in found.items():
        lists = {name: tuple(facts[name]) for name in ("settings", "marked") if name in facts}
        yield Term(key, **facts | lists)
    for kind in POSITIONS.values():
        if kind.is_inside:
            view = {"view": kind.name}
            yield Term(kind.name, "positions", view, marked=(), variant=kind)


TERMS = tuple(_read())
BY_SETTING = {setting: term for term in TERMS for setting in term.settings}
"""The term that teaches a setting of an experiment, by the setting's name, such as ``n_heads``."""
BY_KEY = {term.key: term for term in TERMS}


def begin() -> None:
    """Forget which texts of the page carry terms; called before a page is drawn."""
    st.session_state[_CLAIMS] = {}


def marked(text: str) -> str:
    """Return Markdown in which the first use of each term on this page is a link to its meaning.

    The text that used a term first keeps it when only a part of the page is drawn again.
    """
    claims: dict[str, str] = st.session_state.setdefault(_CLAIMS, {})
    known = _forms(language())
    parts = _WHOLE.split(text)  # odd ones are not running text
    used: set[str] = set()

    def link(match: re.Match[str]) -> str:
        key = known[match[0].casefold()]
        if key in used or _ends_emphasis(match) or claims.setdefault(key, text) != text:
            return match[0]
        used.add(key)
        return f"[{match[0]}]({ADDRESS}{key})"

    pattern = _pattern(language())
    linked = "".join(
        part if number % 2 else pattern.sub(link, part) for number, part in enumerate(parts)
    )
    return _BOLD_LINK.sub(r"[**\1**](\2)", linked)


def _ends_emphasis(match: re.Match[str]) -> bool:
    """Whether emphasis that holds more than a term ends behind it, and a particle follows.

    To Markdown, ``**`` between a bracket and a letter ends nothing.
    """
    before, after = match.string[: match.start()], match.string[match.end() :]
    stars = re.match(r"(\*{1,2})\w", after)
    return stars is not None and not (stars[1] == "**" and re.search(r"(?<!\w)\*\*$", before))


_BOLD_LINK = re.compile(r"\*\*\[([^\]]*)\]\(([^)]*)\)\*\*(?=\w)")
"""A bold term before a particle: the link goes around the bold word."""
_WHOLE = re.compile(
    r"(```.*?```|`[^`]*`|\$[^$]+\$|\[[^\]]*\]\([^)]*\)|:[a-z-]+:?\[|:material/\w+:|<[^>]*>|^#.*$)",
    re.DOTALL | re.MULTILINE,
)
"""What of Markdown is not running text: code, formulas, links, directives, headings."""


@lru_cache(maxsize=8)
def _forms(spoken: str) -> dict[str, str]:
    """Return the key of each word that is marked in texts of a language, in lower case."""
    if spoken == "en":
        return {form.casefold(): term.key for term in TERMS for form in term.forms}
    return {term.name.casefold(): term.key for term in TERMS}


@lru_cache(maxsize=8)
def _pattern(spoken: str) -> re.Pattern[str]:
    longest_first = sorted(_forms(spoken), key=len, reverse=True)
    end = r"(?![\w-])" if spoken == "en" else ""  # elsewhere particles may follow
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))}){end}", re.I)
