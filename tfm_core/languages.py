"""Where the files of a language lie: in a translator's folder first, then in the app.

``TFM_LANGUAGES_DIR`` names a folder that is laid out as the app is; see docs/translating.md.
"""

from __future__ import annotations

import gettext
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

VARIABLE = "TFM_LANGUAGES_DIR"
FOLDER = Path(_said) if (_said := os.environ.get(VARIABLE, "").strip()) else None
_ROOMS = ("pages", "tfm_core")


def places(own: Path) -> list[Path]:
    """Return where files of a folder of the app may lie: the translator's place, the app's."""
    rooms = [at for at, part in enumerate(own.parts) if part in _ROOMS]
    if FOLDER is None or not rooms:
        return [own]
    return [FOLDER.joinpath(*own.parts[rooms[-1] :]), own]


def file_in(own: Path, name: str) -> Path | None:
    """Return a file of a folder of the app, the translator's if there is one; None for none."""
    return next((path for place in places(own) if (path := place / name).is_file()), None)


def catalogue(own: Path, chosen: Sequence[str] | None) -> gettext.NullTranslations:
    """Return the messages of a language; what the translator's lack comes from the app's.

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
