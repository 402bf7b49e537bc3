"""The host's settings: the ``TFM_`` variables of the environment, each a field with its meaning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field
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


def variable(value: Any, meaning: str, *, default: str, zero: str = "", public: Any = None) -> Any:
    """Return a field of ``Settings``.

    meaning: what it is, with its unit. default: ``value`` in words. zero: what 0 means, "" where it
    is no number. public: the value with TFM_PUBLIC=1, where that is another one.
    """
    words: dict[str, Any] = {"default": default, "zero": zero, "public": public}
    return Field(value, description=meaning, json_schema_extra=words)


class Settings(BaseSettings):
    """What a host decided; None where nothing was set: no limit, or whatever suits the machine.

    Everywhere 0 means none: a server that lets none train or be kept only shows what it has
    (``only_shows``). ``read`` fills it from the environment.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    runs_dir: Path = variable(Path("runs"), "the folder of runs", default="`runs/`")
    max_running: Whole | None = variable(
        None,
        "runs that train at the same time; the others wait",
        default="cores − 1; 8 jobs of Ray",
        zero="only shows",
    )
    max_seconds: Whole | None = variable(
        None,
        "seconds that a run may train, over all its resumes; then it is stopped",
        default="no limit; public: 3600",
        zero="only shows",
        public=3600,
    )
    max_disk: Size | None = variable(
        None,
        "space for all runs and data sets (`500MB`, `20GB`, `1.5TB`)",
        default="no limit; public: 20GB",
        zero="only shows; nothing is deleted",
        public=20_000_000_000,
    )
    recorded_only: Switch = variable(
        False,
        "1 shows the recorded runs and nothing else, without PyTorch; see docs/deploy.md",
        default="0",
    )
    public: Switch = variable(
        False,
        "1 for a server on the internet: runs belong to the visitors who started them, and "
        "limits have the public defaults",
        default="0",
    )
    lessons_dir: Path | None = variable(
        None, "a folder with a teacher's lessons; see docs/lessons.md", default="none"
    )
    frame_ancestors: Sources | None = variable(
        None,
        "sites that may show the app in a frame, as in a Content-Security-Policy: "
        "`'self' https://example.org`",
        default="every site; public: `'self'`",
        public="'self'",
    )
    hosts: Hosts = variable(
        (),
        "host names of the app on the loopback address, behind a proxy that adds no "
        "`X-Forwarded-` or `Forwarded` header: `app.example.org *.example.com`; `*` allows every "
        "name; see docs/security.md",
        default="`localhost` and this computer's own",
    )
    ray_address: Address | None = variable(
        None,
        "the dashboard of a Ray cluster's head, `http://HOST:8265`: each run is a job there; "
        "see docs/deploy.md",
        default="none: this machine trains",
    )

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


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable; see ``variable``."""

    name: str
    field: str
    meaning: str
    default: str
    zero: str = ""
    public: Any = None


def _variable(field: str) -> Variable:
    info = Settings.model_fields[field]
    words: Any = info.json_schema_extra
    return Variable(f"{PREFIX}{field.upper()}", field, str(info.description), **words)


VARIABLES = tuple(map(_variable, Settings.model_fields))

OTHERS = (
    Variable(
        "TFM_DATA_DIR",
        "",
        "the folder of downloaded data sets; a complete MNIST there is used as it is",
        "`data/`",
    ),
    Variable(
        "TFM_LANGUAGE",
        "",
        "the language of the pages for who has chosen none, neither by a link nor in the frame",
        "the browser's, else `en`",
    ),
)
"""Variables that are no settings of a host: the code that uses them reads them."""
