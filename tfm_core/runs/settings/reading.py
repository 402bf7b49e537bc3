"""The environment read, and checked before a start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from tfm_core import languages
from tfm_core.runs.settings.decided import VARIABLES, Settings
from tfm_core.sentences import Paragraph, StudentError


def read(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment says. Raises StudentError: the variable, and what is right.

    A variable that is empty counts as not said. ``os.environ`` is read where none is given.
    """
    said = os.environ if environment is None else environment
    texts = {one.name: text for one in VARIABLES if (text := said.get(one.name, "").strip())}
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
        defaults = {one.field: one.public for one in VARIABLES if one.public is not None}
        values = defaults | values
    if settings.login_to_watch:  # a published run's address needs no login
        values = {"max_published": 0} | values
    settings = Settings(**values)
    if settings.trains_on == "ray" and settings.ray_address is None:
        raise StudentError(
            "TFM_BACKEND is 'ray', so set TFM_RAY_ADDRESS, for example http://HOST:8265."
        )
    return settings


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
    for name, folder in (
        ("TFM_LESSONS_DIR", said.lessons_dir),
        ("TFM_MODELS_DIR", said.models_dir),
        (languages.VARIABLE, languages.FOLDER),
    ):
        if folder is not None and not folder.is_dir():
            raise StudentError(
                "{name} is {text!r}, which is not a folder.", name=name, text=str(folder)
            )
    if said.runs_url is not None:
        _check_address(said.runs_url)
    return said


def _check_address(url: str) -> None:
    """Raise StudentError where nothing is installed that could open an address."""
    import fsspec

    protocol = url.partition("://")[0]
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError:
        raise StudentError(Paragraph("runs/protocol-missing", protocol=protocol)) from None
    except ValueError:
        raise StudentError(
            "TFM_RUNS_URL begins with {protocol}://; use, for example, s3:// or file://.",
            protocol=protocol,
        ) from None
