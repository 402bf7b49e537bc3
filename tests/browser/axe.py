"""axe-core on a page: which elements break WCAG 2.2 A or AA, or one of axe's best practices."""

import time

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.browser.tab import PATIENCE

STREAMLIT = {
    # The menu of a narrow window: a list whose items stand in a div. Its pages have their names.
    "list": "[data-testid=stSidebarNav]",
    "listitem": "[data-testid=stSidebarNav]",
    # A box that scrolls sideways: browsers let Tab stop there, which axe does not know.
    "scrollable-region-focusable": "[data-testid=stCode], [data-testid=stTable], .katex-display",
    # The field of a multiselect is as narrow as what is typed; a press beside it reaches it, too.
    "target-size": "[data-testid=stMultiSelect] [role=combobox]",
    # The box that files can be dropped on stands around a button that does the same.
    "presentation-role-conflict": "[data-testid=stFileUploaderDropzone]",
    # The corner of a table whose rows have names.
    "empty-table-header": "[data-testid=stTable], [data-testid=stMarkdown]",
}
"""Findings that are Streamlit's, by rule: the selector of what they are in."""
_RUN = """async ([streamlit, labels]) => {
    const { violations } = await axe.run({
        resultTypes: ["violations"], preload: false, elementRef: true,
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
        rules: { "label-content-name-mismatch": { enabled: labels } },
    });
    const ours = ({ id }, { element }) => !(id in streamlit && element.closest(streamlit[id]));
    return violations.flatMap((rule) => rule.nodes.filter((node) => ours(rule, node)).map(
        ({ target, html, failureSummary }) =>
            [`${rule.id} (${rule.impact})`, target.flat().at(-1), html.slice(0, 200),
             failureSummary.split("\\n")[1].trim()].join(" | ")));
}"""


def expect_no_violations(page: Page, *, labels: bool = True) -> None:
    """Fail where axe finds anything that is not in ``STREAMLIT``, once the page has its looks.

    axe looks into shadow roots, not into canvases. labels: whether a name has to contain its label,
    which is so in no language whose sentences are brackets.
    """
    end = time.monotonic() + PATIENCE / 1000  # a change of theme or size repaints
    while found := _violations(page, labels):
        assert time.monotonic() < end, "\n".join([page.url, *found])
        page.wait_for_timeout(500)


def _violations(page: Page, labels: bool) -> list[str]:
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(_RUN, [STREAMLIT, labels])
    return found
