"""Words: everything a person reads goes through ``_``; long texts are Markdown files.

A second language is a folder beside ``content/en`` and a catalogue
``locale/<language>/LC_MESSAGES/pages.mo``; ``TFM_LANGUAGE`` names it.
"""

from __future__ import annotations

import gettext
import os
from pathlib import Path

PAGES_DIR = Path(__file__).resolve().parent
LANGUAGE = os.environ.get("TFM_LANGUAGE", "en")

_catalogue = gettext.translation(
    "pages", localedir=PAGES_DIR / "locale", languages=[LANGUAGE], fallback=True
)
_ = _catalogue.gettext
ngettext = _catalogue.ngettext


def content(name: str) -> str:
    """Return the Markdown of ``content/<language>/<name>.md``, in English where it is missing.

    Raises FileNotFoundError when there is no English text of that name either.
    """
    path = PAGES_DIR / "content" / LANGUAGE / f"{name}.md"
    if not path.is_file():
        path = PAGES_DIR / "content" / "en" / f"{name}.md"
    return path.read_text(encoding="utf-8")
