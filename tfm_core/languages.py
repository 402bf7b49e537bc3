"""Where the files of a language lie."""

from __future__ import annotations

import gettext
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

FOLDER: Path | None = None
"""A folder that is laid out as the app is and comes before it: for the languages of tests."""
_ROOMS = ("pages", "tfm_core")


def places(own: Path) -> list[Path]:
    """Return where files of a folder of the app may lie: in FOLDER first, then in the app."""
    rooms = [at for at, part in enumerate(own.parts) if part in _ROOMS]
    if FOLDER is None or not rooms:
        return [own]
    return [FOLDER.joinpath(*own.parts[rooms[-1] :]), own]


def file_in(own: Path, name: str) -> Path | None:
    """Return a file of a folder of the app, that of FOLDER if there is one; None for none."""
    return next((path for place in places(own) if (path := place / name).is_file()), None)


def catalogue(own: Path, chosen: Sequence[str] | None) -> gettext.NullTranslations:
    """Return the messages of a language; what FOLDER lacks comes from the app.

    own: the app's folder of catalogues. chosen: languages; without them those of the environment.
    """
    found = [
        gettext.translation("pages", place, chosen)
        for place in places(own)
        if gettext.find("pages", place, chosen)
    ]
    for one, other in pairwise(found):
        one.add_fallback(other)
    return found[0] if found else gettext.NullTranslations()
