"""The ``TFM_`` variables: whether they can be read, and whether anybody reads them."""

from __future__ import annotations

import difflib
import os

from tfm_core.doctor.finding import Finding
from tfm_core.runs import settings
from tfm_core.sentences import StudentError

KNOWN = {variable.name for variable in (*settings.VARIABLES, *settings.OTHERS)}


def check_variables() -> Finding:
    """Read every variable; name those that nobody reads, with what was probably meant."""
    try:
        said = settings.checked()
    except StudentError as error:
        return Finding("variables", "problem", str(error), "Neither app nor training starts.")
    there = sorted(name for name in os.environ if name.startswith("TFM_") and os.environ[name])
    unknown = [_meant(name) for name in there if name not in KNOWN]
    if unknown:
        return Finding("variables", "warning", f"Nobody reads {', '.join(unknown)}.")
    if said.public and said.host_key is None and not said.admins:
        words = "TFM_PUBLIC is 1 and TFM_HOST_KEY is not set: nobody can act as the host."
        return Finding("variables", "warning", words, "Do: set it to 16 characters or more.")
    return Finding("variables", "ok", f"{', '.join(there) or 'None'} set.")


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name, KNOWN, 1)
    return f"{name} (is {near[0]} meant?)" if near else name
