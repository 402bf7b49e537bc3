"""What the options of a training ask for. What cannot be is a ValueError, in a sentence."""

from __future__ import annotations

from typing import Any

from tfm_core.config import Experiment, from_query, to_query
from tfm_core.sentences import StudentError

_THREADS_AUTO = "auto"


def chosen_experiment(preset: str | None, changes: list[str], seed: int | None) -> Experiment:
    """Return a preset's experiment with changes. Raises ValueError, in a sentence."""
    query = {} if preset is None else to_query(_preset(preset).experiment)
    for change in changes:
        setting, equals, value = change.partition("=")
        if not equals or not setting:
            raise StudentError(
                "--set takes SETTING=VALUE, such as model.d_model=128, not {change!r}.",
                change=change,
            )
        query[setting.strip()] = value.strip()
    if seed is not None:
        query["seed"] = str(seed)
    if not query:
        raise StudentError("Choose what to train: --preset NAME, or --set task.name=copy.")
    return from_query(query)


def preset_label(name: str | None) -> str | None:
    """Return how the app calls a preset."""
    return None if name is None else str(_preset(name).label)


def _preset(name: str) -> Any:
    from tfm_core.presets import PRESETS

    if name not in PRESETS:
        raise StudentError(
            "There is no preset {name!r}. Choose one of {presets}.",
            name=name,
            presets=", ".join(PRESETS),
        )
    return PRESETS[name]


def check_device(name: str) -> None:
    """Raise ValueError for a device that is not there."""
    from tfm_core.training.devices import resolve

    resolve(name)


def chosen_threads(text: str) -> int:
    """Return the number of threads asked for. Raises ValueError, in a sentence."""
    from tfm_core.training import devices

    if text == _THREADS_AUTO:
        return devices.fastest_threads(devices.measure_threads())
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1024:
        raise StudentError("--threads is {text!r}; use a number from 1, or auto.", text=text)
    return int(text)
