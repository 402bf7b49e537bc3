"""Forged links: any page with anything in its address; every one opens, or says why not.

A link holds some of what the page's view and configurations are made of, with values that fit, that
almost fit and that are nothing of the kind, and the id of a run that is there, is not, or is none.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.attacks._pages import TRIED, Tally, app_on
from benchmarks.linked_views import VIEWS
from benchmarks.report import Table
from pages.ui.address import view_link
from pages.ui.navigation.page_table import PAGES, PageFacts
from pages.ui.settings.fields import settings_of
from tfm_core.config import TASK_FACTS
from tfm_core.runs.store import RECORDED

COUNT, QUICK = 1_000, 40
RUNS = sorted(folder.name for folder in RECORDED.iterdir() if folder.name.startswith("recorded-"))
ODD = (
    "", " ", "0", "-1", "1", "2", "7", "12", "64", "1.5", "1e9", "999999999", "9" * 5_000, "nan",
    "inf", "true", "None", "null", "[]", "{}", "1,1", "1,", ",", "1-2-2", "q3", "z9", "a" * 3_000,
    "\x00", "\n", "٣", "½", "🙂", "가", "%", "%00", "../../etc/passwd", "/etc/passwd",
    "<script>alert(1)</script>",
    "**bold** [a](javascript:alert(1)) ![i](http://127.0.0.1/x)", "$x$", ":material/check:",
    "picture-", "picture-eJw", "picture-" + "A" * 2_000, "test-7", "test-999999999", "own", "run",
    "draft", "gpt2-xl", "vit-h", "\u202e", "a;b:c=d&e",
)  # fmt: skip
"""Values that fit nothing, or what they were not made for."""


def tables(*, quick: bool) -> Iterator[Table]:
    """Open forged links, one after another."""
    tally, pages = Tally(), Counter[str]()
    with tempfile.TemporaryDirectory() as place, app_on(Path(place)):
        attack(tally, pages, count=QUICK if quick else COUNT)
    yield Table(
        "Forged links",
        ["page", "tried", "fell"],
        [
            ["all", f"{tally.attacks:,}", str(len(tally.broken))],
            *([page, f"{n:,}", ""] for page, n in pages.most_common()),
        ],
        [
            "Examples by hypothesis, the same ones every time.",
            *(f"Fell: {one}." for one in tally.broken[:20]),
        ],
    )


def attack(tally: Tally, pages: Counter[str], *, count: int) -> None:
    """Open so many links."""

    @settings(TRIED, max_examples=count)
    @given(links())
    def one(link: tuple[str, dict[str, str]]) -> None:
        name, query = link
        tally.attacks += 1
        pages[name] += 1
        tally.open(f"link {tally.attacks}", PAGES[name].file, query)

    one()


@st.composite
def links(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """Return a page's name and the query of a link to it."""
    page = draw(st.sampled_from(list(PAGES.values())))
    known = _values(page)
    query = {
        name: draw(st.sampled_from(known[name] + ODD) | st.text(max_size=30))
        for name in draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=5))
    }
    if draw(st.booleans()):
        query["run"] = draw(st.sampled_from((*RUNS, *RUNS, "recorded-nothing", *ODD)))
    if draw(st.integers(0, 9)) == 0:
        query[draw(st.text(max_size=20))] = draw(st.sampled_from(ODD))
    return page.name, query


def _values(page: PageFacts) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a page's address, and values of each that fit."""
    found: dict[str, tuple[str, ...]] = {"lang": ("en", "ko", "xx")}
    if page.name in VIEWS:
        for one in view_link.parameters(VIEWS[page.name]).values():
            names = tuple(str(name) for name in getattr(one, "names", ()))
            found |= {query: names for query in (one.query, *one.old)}
    families = tuple({family for facts in TASK_FACTS.values() for family in facts.families})
    found["model.family"], found["task.name"] = tuple(sorted(families)), tuple(TASK_FACTS)
    for setting in settings_of("encoder-decoder", "copy"):
        found.setdefault(setting.path, ("2", "4", "true"))
    return found
