"""The environment read, and checked before a start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from tfm_core.sentences import N_, Sentence, StudentError
from tfm_core.settings.decided import OTHERS, PUBLIC, VARIABLES, Settings
from tfm_core.settings.values import PREFIX

_OF_TESTS = re.compile(r"TFM_(NIGHTLY|SEED|UNTIL|WRITE_RECORD|TEST_\w+)")


def read(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment says. Raises StudentError: the variable, and what is right.

    A variable that is empty counts as not said. ``os.environ`` is read where none is given.
    """
    said = os.environ if environment is None else environment
    texts = {name: text for name in VARIABLES if (text := said.get(name, "").strip())}
    if folder := texts.get("TFM_RUNS_DIR"):
        texts["TFM_RUNS_DIR"] = str(Path(folder).absolute())
    return _settings(tuple(texts.items()))


@lru_cache(maxsize=64)
def _settings(texts: tuple[tuple[str, str], ...]) -> Settings:
    """Return the settings of some variables, cached because pages ask all the time."""
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): text for name, text in texts}
    try:
        settings = Settings(**(values := source()))
    except ValidationError as error:
        raise error.errors()[0]["ctx"]["error"] from None
    if settings.public:
        values = {**PUBLIC, **values}
    return Settings(**values)


def unknown(environment: Mapping[str, str] | None = None) -> list[Sentence]:
    """Return a sentence for each ``TFM_`` variable that nothing reads, with the nearest name."""
    values = os.environ if environment is None else environment
    known = [*VARIABLES, *OTHERS]
    found = []
    for name in sorted(values.keys() - known):
        if not name.startswith(PREFIX) or not values[name] or _OF_TESTS.fullmatch(name):
            continue
        sentence = N_("{name} is unknown.", name=name)
        for guess in get_close_matches(name, known, n=1, cutoff=0.75):
            sentence = N_("{name} is unknown. Did you mean {guess}?", name=name, guess=guess)
        found.append(sentence)
    return found


def checked(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment says, for a start: the folder of runs is there or can be made.

    Raises StudentError: the variable, and what is right.
    """
    said = read(environment)
    there = next(
        p for p in (said.runs_dir, *said.runs_dir.absolute().parents) if os.path.lexists(p)
    )
    if not there.is_dir():
        raise StudentError(
            "TFM_RUNS_DIR is {text!r}, but {there} is not a folder.",
            text=str(said.runs_dir),
            there=str(there),
        )
    if said.lessons_dir is not None and not said.lessons_dir.is_dir():
        raise StudentError(
            "{name} is {text!r}, which is not a folder.",
            name="TFM_LESSONS_DIR",
            text=str(said.lessons_dir),
        )
    return said
