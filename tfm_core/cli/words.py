"""What the command line says, in the language of ``TFM_LANGUAGE``, else of the system."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import tfm_core
from tfm_core import languages
from tfm_core.sentences import N_
from tfm_core.spoken import Catalogue, filled, translate

_BESIDE = Path(tfm_core.__file__).resolve().parents[1]
_PLACES = (_BESIDE / "pages" / "locale", _BESIDE / "watch_a_transformer" / "pages" / "locale")
"""Where the app's catalogues lie: in its folder, and where a wheel puts them."""


def _(text: str | BaseException | None, /, **values: object) -> str:
    """Return a text of the command line in its language, with its values filled in."""
    catalogue = _catalogue()
    language = catalogue.info().get("language", "en")
    return translate(text, values, language=language, catalogue=catalogue, say=_)


def ngettext(one: str, many: str, n: int, /, **values: object) -> str:
    """Return the singular or plural form for a number."""
    return filled(_catalogue().ngettext(one, many, n), values, _)


@cache
def _catalogue() -> Catalogue:
    folder = next((place for place in _PLACES if place.is_dir()), _PLACES[0])
    chosen = os.environ.get("TFM_LANGUAGE")
    return languages.catalogue(folder, [chosen] if chosen else None)


STATES = {
    "queued": N_("queued"),
    "starting": N_("starting"),
    "running": N_("running"),
    "paused": N_("paused"),
    "finished": N_("finished"),
    "stopped": N_("stopped"),
    "failed": N_("failed"),
    "interrupted": N_("interrupted"),
    "damaged": N_("damaged"),
    "opened": N_("opened"),
}
"""What the state of a run is called."""
