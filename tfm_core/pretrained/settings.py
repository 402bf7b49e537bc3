"""The values of a config.json, each checked where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfm_core.data.opened_folder import CONFIG, Unopenable
from tfm_core.reading import is_number, is_whole

MAX_WORDS = 1_000_000
"""Rows of a table of words."""


class Settings:
    """What config.json holds. Every method raises Unopenable for a value that cannot be."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """values: the JSON object, of which nothing is known yet."""
        self._values = values

    def whole(self, *names: str, default: int | None = None, most: int = 2**16) -> int:
        """Return a whole number from 1 on, by the first of its names that is there."""
        name, value = self._named(names, default)
        if not is_whole(value, 1, most):
            raise invalid(name, value)
        return value

    def number(self, name: str, default: float) -> float:
        """Return a positive number."""
        value = self._values.get(name, default)
        if not is_number(value, 1e-15, 1e12):
            raise invalid(name, value)
        return float(value)

    def boolean(self, name: str, default: bool) -> bool:
        """Return true or false."""
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise invalid(name, value)
        return value

    def token(self, name: str, default: int | None = None) -> int | None:
        """Return the id of a token; None where the model has none."""
        value = self._values.get(name, default)
        value = value[0] if isinstance(value, list) and value else value
        if value is not None and not is_whole(value, 0, MAX_WORDS):
            raise invalid(name, value)
        return value

    def chosen(self, name: str, default: str, known: Mapping[str, str]) -> str:
        """Return our name of a variant, by its name there."""
        value = self._values.get(name, default)
        if not isinstance(value, str) or value not in known:
            raise unsupported(name, value, " | ".join(known))
        return known[value]

    def only(self, name: str, *values: object) -> None:
        """Refuse any value but these, the first of which is taken where there is none."""
        value = self._values.get(name, values[0])
        if value not in values:
            raise unsupported(name, value, " | ".join(map(_short, values)))

    def labels(self, default: int = 2) -> int:
        """Return the number of classes."""
        names = self._values.get("id2label")
        if isinstance(names, dict):
            return len(names)
        return self.whole("num_labels", default=default)

    def text(self, name: str) -> str | None:
        """Return a name; None where there is none."""
        value = self._values.get(name)
        return None if value is None else str(value)

    def has(self, name: str) -> bool:
        """Return whether there is a value."""
        return self._values.get(name) is not None

    def part(self, name: str) -> Settings:
        """Return the settings inside one of these; none where it is missing."""
        values = self._values.get(name)
        if values is not None and not isinstance(values, dict):
            raise invalid(name, values)
        return Settings(values or {})

    def _named(self, names: tuple[str, ...], default: int | None) -> tuple[str, Any]:
        for name in names:
            if self._values.get(name) is not None:
                return name, self._values[name]
        return names[0], default


def invalid(name: str, value: object) -> Unopenable:
    """Return the error for a value that no model can have."""
    return Unopenable(
        "{file} has no valid {name}: {value}.", file=CONFIG, name=name, value=_short(value)
    )


def unsupported(name: str, value: object, known: str) -> Unopenable:
    """Return the error for a value that the engine lacks."""
    return Unopenable(
        "{name} is {value} in {file}; supported: {known}.",
        name=name,
        value=_short(value),
        file=CONFIG,
        known=known,
    )


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = "".join(one if one.isprintable() else "?" for one in text)
    return text if len(text) <= 40 else f"{text[:37]}..."
