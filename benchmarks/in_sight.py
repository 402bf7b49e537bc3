"""What the first screen of every page holds: words, controls, and the page's subject.

Counted in a session that is new to the page, without scrolling.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import chromium
from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import Served, serve
from pages.app.navigation.page_table import PAGES, PageFacts

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = (390, 844)
SUBJECTS = {
    "runs": "[class*=st-key-run-]",
    "try": ".desk",
    "knockouts": ".board",
    "challenges": "[class*=st-key-challenge-cards]",
    "own-data": "img",
    "numbers": ".tfm-tokens",
    "glossary": "[data-testid=stExpander]",
    "class": "[data-testid=stAlert]",  # without a teacher's key it says how to get one
}
"""What a page is about, where it is not the first large figure, picture, map or table on it."""
ANY_SUBJECT = "canvas, svg, figure, table, img, [role=img], [role=grid]"
_SETTLE = 2000  # ms
_MOST_LOOKS = 30
"""Some pages never come to rest."""
_ON_ITS_WAY = "[data-testid=stSkeleton], [data-testid=stSpinner], [data-test-script-state=running]"

_HOLDS = "() => document.querySelector('.st-key-page').innerText"

# What can be pressed, typed into or asked (marks of help). Of those inside each other the outer
# counts; of places that only take the focus, such as a table that scrolls, the inner. A list that
# opens counts once, without its arrow. So does a map in a component: Tab stops at it once, and
# arrow keys move among its cells. Links in running text are not controls.
_CONTROLS = """(root) => {
    const pressed = 'button, input:not([type=hidden]), select, textarea, summary, a[href], ' +
        '[contenteditable=true], [role=button], [role=tab], [role=slider], [role=combobox], ' +
        '[role=radio], [role=option], [role=checkbox], [role=switch], ' +
        '[data-testid=stTooltipIcon]';
    const isPart = (part) => part.tabIndex < 0 && (part.getRootNode() !== document
        || part.matches('[role=combobox] ~ button, [role=combobox] ~ * button'));
    const isInside = (part, of) => {
        while (part) {
            if (part === of) return true;
            part = part.parentNode ?? part.host;
        }
        return false;
    };
    const isInSight = (part) => {
        const frame = (part.matches('input') && part.closest('label')) || part;
        const { top, bottom, left, right, width, height } = frame.getBoundingClientRect();
        return width > 1 && height > 1 && bottom > 0 && top < innerHeight && right > 0
            && left < innerWidth && part.checkVisibility({
                visibilityProperty: true, opacityProperty: !part.matches('input'),
            });
    };
    const within = (list) => list.filter((part) => isInside(part, root) && isInSight(part));
    const all = within(deep(pressed))
        .filter((part) => !isPart(part) && !(part.matches('a') && part.closest('p')));
    const outer = all.filter((part) => !all.some((other) =>
        other !== part && isInside(part, other)));
    const focused = within(deep('[tabindex="0"]')).filter((part) =>
        !outer.some((other) => isInside(part, other) || isInside(other, part)));
    const leaves = focused.filter((part) => !focused.some((other) =>
        other !== part && isInside(other, part)));
    return outer.length + leaves.length;
}"""
_OF_PAGE = f"() => ({_CONTROLS})(document.querySelector('.st-key-page'))"
_OF_FRAME = (
    f"() => ({_CONTROLS})(document.body) - ({_CONTROLS})(document.querySelector('.st-key-page'))"
)
# The subject is the topmost of what the selector finds, in components too; in sight is half of it,
# or as much as a thumb is high.
SUBJECT = """(selector) => {
    const page = document.querySelector('.st-key-page');
    const isOfPage = (part) => {
        while (part && part !== page) part = part.parentNode ?? part.host;
        return part === page;
    };
    const [part] = deep(selector).filter(isOfPage).map((one) => one.getBoundingClientRect())
        .filter(({ width, height }) => width >= 100 && height >= 24)
        .sort((one, other) => one.top - other.top);
    if (!part) return 'absent';
    const seen = Math.min(part.bottom, innerHeight) - Math.max(part.top, 0);
    return seen >= Math.min(part.height / 2, 200) ? 'in sight' : `at ${Math.round(part.top)} px`;
}"""

# Words of sentences, labels and buttons in sight; figures, code, tables of data and what components
# draw in their shadow roots are the subject; `math` is the hidden copy of a formula.
_WORDS = """() => {
    const words = [];
    const isSubject = (node) => node.closest?.('svg, canvas, pre, code, table, math');
    const visit = (node) => {
        if (node.nodeType === Node.TEXT_NODE) {
            const range = document.createRange();
            range.selectNodeContents(node);
            const inSight = [...range.getClientRects()].some(({ top, bottom, width }) =>
                width > 1 && bottom > 0 && top < innerHeight);
            if (inSight && node.parentElement?.checkVisibility({ visibilityProperty: true })) {
                words.push(...(node.data.match(/[\\p{L}][\\p{L}\\p{N}'’-]*/gu) ?? []));
            }
        } else if (!isSubject(node)) {
            node.childNodes.forEach(visit);
        }
    };
    visit(document.querySelector('[data-testid=stMain]'));
    return words.length;
}"""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Count what the first screens hold; ``quick``: of every eighth page."""
    if chromium.is_lacking():
        yield Skipped("What is in sight", chromium.LACKING)
        return

    with (
        tempfile.TemporaryDirectory() as folder,
        chromium.opened() as browser,
        serve(Path(folder)) as served,
    ):
        yield first_screens(served, browser, list(PAGES.values())[:: 8 if quick else 1])


def first_screens(served: Served, browser: Browser, pages: Sequence[PageFacts]) -> Table:
    """Count words and controls at 1280x720, and look for the subject at 390x844."""
    rows, frame = [], 0
    for facts in pages:
        url = f"{served.url}/{facts.url_path}"
        page = _settled(browser, url)
        words, controls = int(page.evaluate(_WORDS)), int(page.evaluate(_OF_PAGE))
        frame = max(frame, int(page.evaluate(_OF_FRAME)))
        page.context.close()
        page = _settled(browser, url, size=PHONE)
        subject = page.evaluate(SUBJECT, SUBJECTS.get(facts.name, ANY_SUBJECT))
        page.context.close()
        rows.append((facts.name, words, controls, str(subject)))
    most_words, most_controls = max(row[1] for row in rows), max(row[2] for row in rows)
    unseen = sum(row[3] != "in sight" for row in rows)
    return Table(
        "First screens of new sessions: words and controls at 1280x720, the subject at 390x844",
        ["page", "words", "controls", "subject"],
        [
            [name, str(words), str(controls), subject]
            for name, words, controls, subject in sorted(rows, key=lambda row: (-row[2], -row[1]))
        ],
        [
            f"Words of sentences, labels and buttons, without figures, code, tables and what "
            f"components draw: at most {most_words}, "
            f"{goal_cell('words on a first screen', most_words)}.",
            f"Controls of the page, those in components and marks of help included: at most "
            f"{most_controls}, {goal_cell('controls on a first screen', most_controls)}; the bar "
            f"around every page adds {frame}.",
            f"Subjects out of sight on a phone: {unseen}, "
            f"{goal_cell('subjects out of sight', unseen)}.",
        ],
        {
            "words on a first screen": Figure(most_words),
            "controls on a first screen": Figure(most_controls),
            "subjects out of sight": Figure(unseen),
        },
    )


def _settled(browser: Browser, url: str, *, size: tuple[int, int] = (1280, 720)) -> Page:
    """Open a page, and wait until nothing of it is still on its way and what it holds stays."""
    page = chromium.visit(browser, url, size=size)
    before, now = "", page.evaluate(_HOLDS)
    for _ in range(_MOST_LOOKS):
        if before == now and not page.locator(_ON_ITS_WAY).count():
            break
        page.wait_for_timeout(_SETTLE)
        before, now = now, page.evaluate(_HOLDS)
    return page
