"""Records that lie in files: dataclasses whose annotations say which values they may hold.

A field says its limits where it stands: ``name: Annotated[str, line(80)]``. A ``Stored`` reads such
a record from plain values, whoever wrote them; fields that it does not know are ignored, and no
value is converted, except for whole numbers where a number may stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from tfm_core.reading import MAX_STEP_NUMBER, Unreadable, is_device, is_line, is_moment, is_text
from tfm_core.sentences import N_

Record = TypeVar("Record")


class WrongValue(Unreadable):
    """A field of a record is damaged or missing; ``name`` is the field's."""

    def __init__(self, file: str, name: str, *, is_missing: bool = False) -> None:
        """Name the field, and the file that it was read from."""
        self.name, self.is_missing = name, is_missing
        super().__init__("the value of “{name}” in {file} is invalid", file=file, name=name)


class Stored(Generic[Record]):
    """One kind of record in one kind of file."""

    def __init__(self, record: type[Record], file: str) -> None:
        """record: a dataclass. file: the name of the file, for messages."""
        self._file, self._adapter = file, TypeAdapter(record)

    def read(self, values: object) -> Record:
        """Return the record that plain values hold. Raises WrongValue for the first wrong field."""
        try:
            return self._adapter.validate_python(values)
        except ValidationError as error:
            first = error.errors()[0]
            is_missing = first["type"] == "missing"
            raise WrongValue(self._file, _field(first), is_missing=is_missing) from None

    def salvage(
        self, values: Mapping[str, Any], make_up: Callable[[], Mapping[str, Any]] = dict
    ) -> tuple[Record, str | None]:
        """Return the record of the values that are sound, and a clause on the first that is not.

        make_up: returns values for fields that have no default, where they are missing or damaged.
        Raises WrongValue for a field that has no value at all.
        """
        try:
            return self._adapter.validate_python(values), None
        except ValidationError as error:
            wrong = [_field(item) for item in error.errors() if item["type"] != "missing"]
        sound = {name: value for name, value in values.items() if name not in wrong}
        clause = WrongValue(self._file, wrong[0]).sentence if wrong else None
        return self.read({**make_up(), **sound}), clause

    def plain(self, record: Record) -> dict[str, Any]:
        """Return the values of a record as JSON knows them, for ``read``."""
        values: dict[str, Any] = self._adapter.dump_python(record, mode="json")
        return values


def _field(item: ErrorDetails) -> str:
    """Return which field of the record an error is about, "" for the record itself."""
    return str(item["loc"][0]) if item["loc"] else ""


def checked(is_valid: Callable[[Any], bool]) -> PlainValidator:
    """Return a validator that takes a value as it is, or not at all."""

    def check(value: Any) -> Any:
        if not is_valid(value):
            raise ValueError(N_("is invalid"))
        return value

    return PlainValidator(check)


def line(most: int) -> PlainValidator:
    """Return a validator of one printable line of 1 to ``most`` characters."""
    return checked(lambda value: is_line(value, most))


def text(most: int) -> PlainValidator:
    """Return a validator of Unicode of at most ``most`` characters."""
    return checked(lambda value: is_text(value, most))


def matching(pattern: re.Pattern[str]) -> PlainValidator:
    """Return a validator of text that matches a pattern from end to end."""
    return checked(lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None)


def one_of(names: Container[str]) -> PlainValidator:
    """Return a validator of text that is one of some names."""
    return checked(lambda value: isinstance(value, str) and value in names)


def whole(low: int, high: int) -> Any:
    """Return the limits of a whole number."""
    return Field(strict=True, ge=low, le=high)


def number(low: float, high: float) -> Any:
    """Return the limits of a finite number."""
    return Field(strict=True, ge=low, le=high, allow_inf_nan=False)


def unstored(value: object) -> BeforeValidator:
    """Return a validator for a field that no file decides: it is ``value``, whatever a file has."""
    return BeforeValidator(lambda _given: value)


Device = Annotated[str, checked(is_device)]
Moment = Annotated[str, checked(is_moment)]
Step = Annotated[int, whole(0, MAX_STEP_NUMBER)]
