"""The record of a variant, the registry of a subject, and the way from a name to its layer.

Nothing here imports torch: a page reads every word of every variant before a model is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from tfm_core.sentences import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A record of a registry: its name, and the parts that a subject adds by inheriting.

    Every part must be given: a part that may be empty has a type that allows ``None``, and says
    ``None``.
    """

    name: str

    def __post_init__(self) -> None:
        """Raise ValueError when a part is empty, so that no variant is half there."""
        for part in fields(self):
            if getattr(self, part.name) == "":
                raise ValueError(
                    f"{type(self).__name__} {self.name!r} lacks its {part.name}: every part of a "
                    "variant must be given."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant(Named):
    """A choice that a setting offers.

    Its words stand in ``content/<language>/<room>.md`` below ``## Norm.layernorm``, its class and
    its name; each is a field that is not given. A word that may be missing allows ``None``.

    name: as configs and links write it. label, help: as the app's controls show them. source: the
    paper or the model it comes from.
    """

    room: ClassVar[str] = "choices/variants"
    label: str = field(init=False)
    help: str = field(init=False)
    source: str

    def __post_init__(self) -> None:
        """Look up the words. Raises KeyError where one is missing, ValueError for an empty part."""
        found = words(f"{self.room}/{type(self).__name__}.{self.name}")
        for part in fields(self):
            if not part.init:
                is_optional = str(part.type).endswith("None")
                word = found.get(part.name) if is_optional else found[part.name]
                object.__setattr__(self, part.name, word)
        Named.__post_init__(self)


@dataclass(frozen=True, slots=True)
class Example:
    """A function or an operator of PyTorch, as the walk explains it.

    name: as it is written. found: a pattern of the code that uses it. says: what it does, in a
    sentence. lines: an example, as it is typed; a line that is an expression shows its value.
    of: name in the code -> the class that it must be, where the code alone does not say.
    """

    name: str
    found: str
    says: str
    lines: tuple[str, ...]
    of: tuple[str, str] | None = None


V = TypeVar("V", bound=Named, covariant=True)


class Registry(Mapping[str, V]):
    """The variants of one subject by name, in the order in which they are offered."""

    def __init__(self, subject: str, *variants: V, others: str | None = None) -> None:
        """subject: in words, such as "position kind". Raises ValueError for a name used twice.

        others: ``"module:name"`` of a function that returns further variants, given the class of
        the first one. It is called at the first use, because its package lies above this one.
        """
        self.subject = subject
        self._given, self._others = self._by_name(variants), others

    @cached_property
    def _variants(self) -> dict[str, V]:
        if self._others is None:
            return self._given
        first = next(iter(self._given.values()))
        return self._by_name((*self._given.values(), *resolve(self._others)(type(first))))

    def _by_name(self, variants: tuple[V, ...]) -> dict[str, V]:
        by_name: dict[str, V] = {}
        for variant in variants:
            if variant.name in by_name:
                raise ValueError(
                    f"There are two variants of {self.subject} named {variant.name!r}."
                )
            by_name[variant.name] = variant
        return by_name

    def __getitem__(self, name: str) -> V:
        """Return a variant. Raises UnknownVariant, a KeyError whose text is a sentence."""
        try:
            return self._variants[name]
        except KeyError:
            names = ", ".join(self._variants)
            raise UnknownVariant(
                f"There is no {self.subject} named {name!r}; there are {names}."
            ) from None

    def __iter__(self) -> Iterator[str]:
        """Names, in order."""
        return iter(self._variants)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._variants)

    def only(self, *names: str) -> Registry[V]:
        """Return a smaller registry, where a model cannot take them all."""
        return Registry(self.subject, *(self[name] for name in names))


class UnknownVariant(KeyError):
    """A name that no variant has; its text is a sentence."""

    def __str__(self) -> str:
        """Return the sentence as it is, without KeyError's quotes."""
        return str(self.args[0])


def resolve(path: str) -> Any:
    """Return what ``"module:name"`` points at. Raises ImportError or AttributeError."""
    module, _colon, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
