"""The host's settings: the ``TFM_`` variables of the environment.

``docs/settings.md`` says what each one means; a test compares names and defaults.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from tfm_core.sentences import N_, Sentence, StudentError
from tfm_core.settings.values import (
    PREFIX,
    Address,
    Hosts,
    Size,
    Sources,
    Switch,
    Whole,
)


@dataclass(frozen=True, slots=True)
class FixedLimits:
    """Upper limits; None: no limit.

    max_queued: runs that wait. max_per_session: runs of one visitor that train or wait, resumed
    ones included. max_pause: seconds that a paused run keeps its place while others wait; then it
    is stopped. max_attention: attention weights in a snapshot (2 bytes each: layers × heads ×
    tokens² × examples), beyond which fewer examples are kept. max_weights: bytes of a run's weights
    at some of its steps; a run with larger weights keeps none. max_runs: runs that are kept.
    max_own_data: bytes of the data sets that visitors add.
    """

    max_queued: int = 100
    max_per_session: int = 8
    max_steps: int | None = None
    max_parameters: int | None = None
    max_pause: int = 600
    max_attention: int = 20_000_000
    max_weights: int = 16_000_000
    max_runs: int | None = None
    max_own_data: int | None = None


LOCAL_LIMITS = FixedLimits()
PUBLIC_LIMITS = replace(
    LOCAL_LIMITS,
    max_per_session=2,
    max_steps=20_000,
    max_parameters=5_000_000,
    max_pause=60,
    max_runs=1000,
    max_own_data=2_000_000_000,
)


class Settings(BaseSettings):
    """What a host decided; None where nothing was set: no limit, or whatever suits the machine.

    Everywhere 0 means none: a server that lets none train or be kept only shows what it has
    (``only_shows``). ``read`` fills it from the environment.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    runs_dir: Path = Path("runs")
    max_running: Whole | None = None
    max_seconds: Whole | None = None  # of training, over all resumes of a run
    max_disk: Size | None = None  # bytes of all runs and data sets
    recorded_only: Switch = False
    public: Switch = False
    lessons_dir: Path | None = None
    frame_ancestors: Sources | None = None
    hosts: Hosts = ()
    ray_address: Address | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_others: PydanticBaseSettingsSource,
        **_more: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from the call alone: which environment counts, ``read`` is given."""
        return (init_settings,)

    @property
    def limits(self) -> FixedLimits:
        """The limits that no variable changes."""
        return PUBLIC_LIMITS if self.public else LOCAL_LIMITS

    @property
    def only_shows(self) -> bool:
        """Whether no run may be started or resumed here, because a limit is 0."""
        return 0 in (self.max_running, self.max_seconds, self.max_disk)


VARIABLES: Mapping[str, str] = {f"{PREFIX}{name.upper()}": name for name in Settings.model_fields}
"""The field of each variable."""
PUBLIC: Mapping[str, Any] = {
    "max_seconds": 3600,
    "max_disk": 20_000_000_000,
    "frame_ancestors": "'self'",
}
"""What has another default with TFM_PUBLIC=1."""
OTHERS = ("TFM_DATA_DIR", "TFM_LANGUAGE")
"""Variables that are no settings of a host: the code that uses them reads them."""


_OF_TESTS = re.compile(r"TFM_(NIGHTLY|SEED|UNTIL|WRITE_RECORD|TEST_\w+)")


def read(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment says. Raises StudentError: the variable, and what is right.

    A variable that is empty counts as not said. ``os.environ`` is read where none is given.
    """
    variables = os.environ if environment is None else environment
    texts = {name: text for name in VARIABLES if (text := variables.get(name, "").strip())}
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
    sentences = []
    for name in sorted(values.keys() - known):
        if not name.startswith(PREFIX) or not values[name] or _OF_TESTS.fullmatch(name):
            continue
        sentence = N_("{name} is unknown.", name=name)
        for guess in get_close_matches(name, known, n=1, cutoff=0.75):
            sentence = N_("{name} is unknown. Did you mean {guess}?", name=name, guess=guess)
        sentences.append(sentence)
    return sentences


def checked(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment says, for a start: the folder of runs is there or can be made.

    Raises StudentError: the variable, and what is right.
    """
    settings = read(environment)
    folder = next(
        p for p in (settings.runs_dir, *settings.runs_dir.absolute().parents) if os.path.lexists(p)
    )
    if not folder.is_dir():
        raise StudentError(
            "TFM_RUNS_DIR is {text!r}, but {there} is not a folder.",
            text=str(settings.runs_dir),
            there=str(folder),
        )
    if settings.lessons_dir is not None and not settings.lessons_dir.is_dir():
        raise StudentError(
            "{name} is {text!r}, which is not a folder.",
            name="TFM_LESSONS_DIR",
            text=str(settings.lessons_dir),
        )
    return settings
