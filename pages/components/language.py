"""The choice of the language, and the language of the document around the app."""

from __future__ import annotations

from collections.abc import Callable

from pages.components.component import component, is_name, plain
from pages.i18n import COOKIE, ENGLISH, N_, _, language, names

STREAMLITS = (
    N_("Skip to main content"),
    N_("Main menu"),
    N_("Logo"),
    N_("Navigate to home page"),
    N_("App pages"),
    N_("{n} more"),
    N_("Sidebar"),
    N_("Expand sidebar"),
    N_("Collapse sidebar"),
    N_("Scroll tabs left"),
    N_("Scroll tabs right"),
    N_("Rerun"),
    N_("Settings"),
    N_("Print"),
    N_("About"),
    N_("Auto"),
    N_("Light"),
    N_("Dark"),
    N_("System"),
    N_("Theme"),
    N_("Stop"),
    N_("Running..."),
    N_("Connecting"),
    N_("Help"),
    N_("Help for {label}"),
    N_("Close"),
    N_("Open"),
    N_("Clear all"),
    N_("Clear value"),
    N_("Remove {label}"),
    N_("Shortcut {label}"),
    N_("Selected {label}"),
    N_("Choose an option"),
    N_("Choose options"),
    N_("No results"),
    N_("Upload"),
    N_("file upload"),
    N_("Notifications"),
    N_("Loading"),
    N_("Selected values"),
    N_("Dataframe column menu"),
    N_("Previous Result"),
    N_("Next Result"),
    N_("Close Search"),
    N_("Pagination"),
    N_("Previous page"),
    N_("Next page"),
    N_("Page {label}"),
    N_("Browse files"),
    N_("Upload directories"),
    N_("Drag and drop a file here"),
    N_("Drag and drop files here"),
    N_("Drag and drop directories here"),
    N_("{size} per file"),
    N_("Limit {size} per file"),
    N_("Copy to clipboard"),
    N_("Copied"),
    N_("Download as CSV"),
    N_("Search"),
    N_("Fullscreen"),
    N_("Close fullscreen"),
    N_("Show/hide columns"),
    N_("progress"),
    N_("Show password"),
    N_("Hide password"),
    N_("Increment"),
    N_("Decrement"),
    N_("Increment {label}"),
    N_("Decrement {label}"),
    N_("Press Enter to apply"),
    N_("Press Enter to submit form"),
    N_("Press Ctrl+Enter to apply"),
)
"""What Streamlit itself writes on a page, in English always: the browser replaces it."""

_switch = component("language", css=["language.css"])


def language_switch(
    *, is_shown: bool, path: str, on_choose: Callable[[str], None], key: str
) -> None:
    """Draw the choice if it is shown, and set the language of the document.

    path: of the cookie that keeps the choice. on_choose: gets the code of another language.
    """
    known, spoken = names(), language()

    def chosen(event: object) -> None:
        code = event[0] if isinstance(event, list) and event else None  # the rest makes it new
        if is_name(code, known):
            on_choose(code)

    words = {} if spoken == ENGLISH else {text.template: _(text.template) for text in STREAMLITS}
    _switch(
        plain(
            {
                "spoken": spoken,
                "names": known if is_shown else {},
                "label": _("Language"),
                "words": words,
                "cookie": COOKIE,
                "path": path,
            }
        ),
        on={"chosen": chosen},
        key=key,
        width="content",
    )
