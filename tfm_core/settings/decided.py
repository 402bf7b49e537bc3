"""The host's settings: the ``TFM_`` variables of the environment.

``docs/settings.md`` says what each one means; a test compares names and defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from tfm_core.settings import fixed
from tfm_core.settings.values import (
    PREFIX,
    Address,
    Hosts,
    Size,
    Sources,
    Switch,
    Whole,
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
    def limits(self) -> fixed.FixedLimits:
        """The limits that no variable changes."""
        return fixed.PUBLIC if self.public else fixed.LOCAL

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
