"""The base of all configs: frozen and validated, with a message for each wrong value.

A config is a pydantic model. Its fields carry the label and the help that the app shows, so a
control, a command-line help text and a validation message all come from one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Protocol, Self, TypedDict, Unpack, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from tfm_core.choices.mistakes import MISTAKES, MistakePlace, made_in
from tfm_core.sentences import N_, Sentence, StudentError, joined, words

MAX_SENTENCES = 8
"""Most sentences about one configuration."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where: ``"model.n_heads"``, or ``""`` for the whole."""

    field: str
    sentence: str


class ConfigError(StudentError):
    """An invalid config; ``problems`` says what is wrong, one sentence a field."""

    def __init__(self, problems: list[Problem]) -> None:
        """Keep the problems; the message is their sentences."""
        self.problems = problems
        super().__init__(joined(*self.sentences))

    @property
    def sentences(self) -> list[str]:
        """The sentences of the problems, cut short where a file is none of this kind at all."""
        sentences = [problem.sentence for problem in self.problems[:MAX_SENTENCES]]
        more = len(self.problems) - len(sentences)
        return [*sentences, N_("And {more:,} more.", more=more)] if more else sentences


@dataclass(frozen=True, slots=True)
class Choice:
    """A variant by name: the label and the help that the app shows for it."""

    label: str
    help: str


class Labelled(Protocol):
    """What a control needs of a variant: a Choice has it, and every record of ``variants``."""

    @property
    def label(self) -> str:
        """A few words."""

    @property
    def help(self) -> str:
        """A sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """Marks a field that holds the name of one of these: ``Annotated[str, OneOf(POSITIONS)]``.

    Validation, its sentence and the app's control read the names here.
    """

    choices: Mapping[str, Labelled]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        """Validate as a Literal of the names would."""
        return core_schema.literal_schema(list(self.choices))


@dataclass(frozen=True, slots=True, eq=False)
class SomeOf:
    """Marks a field that holds names of these, each once, in their order.

    A link separates the names by commas. elsewhere: names that belong to other fields.
    """

    choices: Mapping[str, Labelled]
    elsewhere: Mapping[str, Labelled]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        """Validate with ``read``."""
        names = core_schema.list_schema(core_schema.literal_schema(list(self.choices)))
        return core_schema.no_info_plain_validator_function(
            self.read, json_schema_input_schema=names
        )

    def read(self, value: object) -> tuple[str, ...]:
        """Return names in the order of the choices. Raises StudentError, in a sentence."""
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple):
            raise StudentError("{value} is not a list of names.", value=_short(value))
        chosen = [str(name).strip() for name in names if name != ""]
        for name in chosen:
            if name in self.choices:
                continue
            if name in self.elsewhere:
                raise StudentError(
                    "“{label}” does not apply here; choose from {known}.",
                    label=self.elsewhere[name].label,
                    known=", ".join(self.choices) or "–",
                )
            raise StudentError(
                "Unknown name {name}; choose from {known}.",
                name=_named(name),
                known=", ".join(self.choices) or "–",
            )
        return tuple(name for name in self.choices if name in chosen)


def choices_of(field: FieldInfo) -> Mapping[str, Labelled] | None:
    """Return the variants that a field can name, None where it holds another kind of value."""
    matches = (each.choices for each in field.metadata if isinstance(each, OneOf | SomeOf))
    return next(matches, None)


def holds_several(field: FieldInfo) -> bool:
    """Return whether a field holds the names of several variants."""
    return any(isinstance(each, SomeOf) for each in field.metadata)


class Config(BaseModel):
    """Base of all configs. ``parse`` is the way in for anything that a person may have written."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
    )

    @classmethod
    def parse(cls, values: object) -> Self:
        """Build from plain values. Raises ConfigError, one sentence a problem."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(explain(error, cls)) from None

    @classmethod
    def offered(cls, field: str) -> Mapping[str, Labelled]:
        """Return the variants that a field can name. Raises LookupError where it names none."""
        choices = choices_of(cls.model_fields[field])
        if choices is None:
            raise LookupError(f"{field} of {cls.__name__} does not name one of several variants.")
        return choices

    def replace(self, **changes: Any) -> Self:
        """Return the same config with some fields changed, validated again. Raises ConfigError."""
        return self.parse({**self.model_dump(), **changes})


class Bounds(TypedDict, total=False):
    """The range of a number; ``gt`` and ``lt`` leave out the bound itself."""

    ge: float
    gt: float
    le: float
    lt: float


def setting(
    name: str,
    default: Any,
    *,
    step: float | None = None,
    advanced: bool = False,
    needs: Mapping[str, tuple[str, ...]] | None = None,
    **bounds: Unpack[Bounds],
) -> Any:
    """Return a field with its label, help and range, as the app's controls read them.

    name: its heading in ``content/<language>/choices/settings.md``, whose lines are label and
    help. needs: fields of the same config -> the values with which the setting acts, () for any
    but none or 0; with others it has no control.
    """
    extra: dict[str, Any] = {"step": step, "advanced": advanced, "needs": needs or {}}
    label, help = words(f"choices/settings/{name}").values()
    return Field(default, title=label, description=help, json_schema_extra=extra, **bounds)


def set_fact(label: str, *, default: Any = ..., **rules: Any) -> Any:
    """Return the field of a fact about the set; links and files carry it, no control shows it."""
    words, extra = N_("Fixed by the data set."), dict[str, Any](carried=True)
    return Field(default, title=label, description=words, json_schema_extra=extra, **rules)


def acts(needs: Mapping[str, tuple[str, ...]], values: Mapping[str, Any]) -> bool:
    """Return whether a setting with these needs acts beside the other values of its config."""
    return all(
        values.get(name) in some if some else bool(values.get(name)) for name, some in needs.items()
    )


def needs_of(field: FieldInfo) -> Mapping[str, tuple[str, ...]]:
    """Return the ``needs`` of a setting; see ``setting``."""
    extra: Any = field.json_schema_extra or {}
    needs: Mapping[str, tuple[str, ...]] = extra.get("needs", {})
    return needs


def tagged(union: object, tag: str) -> dict[str, Any]:
    """Return the configs of a union by their tag, a field with another default in each."""
    return {config.model_fields[tag].default: config for config in get_args(union)}


def explain(error: ValidationError, config: type[Config]) -> list[Problem]:
    """Turn pydantic's report on values for a config into sentences for a student."""
    problems, tags = [], _tags(config)
    for item in error.errors():
        if item["type"] == "default_factory_not_called":  # another field says what is wrong
            continue
        context = item.get("ctx", {})
        path = [_named(part) for part in item["loc"]]
        if path[1:2] and path[1] in tags.get(path[0], ()):
            del path[1]  # pydantic names the member of a union too
        field, value = ".".join(path), item.get("input")
        name = path[-1] if path else ""
        if item["type"] == "value_error":
            inner = context["error"]
            if isinstance(inner, CrossError):
                field = ".".join([*path, inner.field]) if inner.field else field
            sentence = inner.sentence if isinstance(inner, StudentError) else str(inner)
            problems.append(Problem(field, sentence))
            continue
        if item["type"] == "extra_forbidden":
            inside = [_named(part) for part in item["loc"][:-1]]
            known = [
                ".".join([*path[:-1], name_of_field])
                for name_of_field in _fields_at(config, inside)
            ]
            problems.append(Problem(field, no_setting(field, known)))
            continue
        problems.append(Problem(field, _sentence(item["type"], name, field, value, context)))
    return problems


def no_setting(path: str, known: Iterable[str]) -> str:
    """Return that a setting is unknown, and the known one most like it, if any."""
    for guess in get_close_matches(path, known, n=1, cutoff=0.75):
        return N_("Unknown setting: {path}. Did you mean {guess}?", path=path, guess=guess)
    return N_("Unknown setting: {field}.", field=path)


def _fields_at(config: type[Config], path: Sequence[str]) -> list[str]:
    """Return the fields of a config, or of the one inside it that a path of pydantic leads to."""
    parts = iter(path)
    for part in parts:
        field = config.model_fields.get(part)
        if field is None:
            return []
        inner: Any = field.annotation
        if isinstance(field.discriminator, str):
            inner = tagged(inner, field.discriminator).get(next(parts, ""))
        elif type(None) in get_args(inner):
            inner = get_args(inner)[0]
        if not (isinstance(inner, type) and issubclass(inner, Config)):
            return []
        config = inner
    return list(config.model_fields)


class CrossError(StudentError):
    """A rule between fields is broken; ``field`` names the control to say it at."""

    def __init__(self, field: str, template: str, /, **values: Any) -> None:
        """Name the field by its dotted path below the config that raises."""
        self.field = field
        super().__init__(template, **values)


def some_of(*places: MistakePlace) -> SomeOf:
    """Return the annotation of a field that holds mistakes made in some places."""
    return SomeOf(made_in(*places), MISTAKES)


def check_mistakes(config: Any) -> None:
    """Raise CrossError where the mistakes of a config cannot be made, or not together."""
    chosen = [MISTAKES[name] for name in config.mistakes]
    for first, second in combinations(chosen, 2):
        if first.excludes(second):
            raise CrossError(
                "mistakes",
                "“{one}” and “{other}” exclude each other; choose one.",
                one=first.label,
                other=second.label,
            )
    for mistake in chosen:
        sentence = mistake.refusal(config) if mistake.refusal is not None else None
        if sentence is not None:
            raise CrossError("mistakes", sentence)


def _tags(config: type[Config]) -> dict[str, set[str]]:
    """Return the fields that hold one config of several, and the tags of those."""
    return {
        name: set(tagged(field.annotation, field.discriminator))
        for name, field in config.model_fields.items()
        if isinstance(field.discriminator, str)
    }


_INTEGER = N_("{name} is {value}; it must be a whole number.")
_NUMBER = N_("{name} is {value}; it must be a number.")
_BOOLEAN = N_("{name} is {value}; it must be true or false.")
_SECTION = N_("{field} is {value}; it must be a set of named values.")
_TEMPLATES = {
    "greater_than_equal": N_("{name} is {value}; it must be at least {ge}."),
    "greater_than": N_("{name} is {value}; it must be greater than {gt}."),
    "less_than_equal": N_("{name} is {value}; it must be at most {le}."),
    "less_than": N_("{name} is {value}; it must be less than {lt}."),
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), _INTEGER),
    **dict.fromkeys(("float_parsing", "float_type"), _NUMBER),
    "finite_number": N_("{name} is {value}; it must be a finite number."),
    **dict.fromkeys(("bool_parsing", "bool_type"), _BOOLEAN),
    "string_type": N_("{name} is {value}; it must be text."),
    "string_pattern_mismatch": N_("{name} is {value}; it must be the id of a data set."),
    "int_parsing_size": N_("{name} is {value}; it must be a smaller whole number."),
    "literal_error": N_("{name} is {value}; choose from {expected}."),
    "missing": N_("{field} is missing."),
    "union_tag_invalid": N_("{field} has {discriminator} {tag}; choose from {expected_tags}."),
    "union_tag_not_found": N_("{field} lacks its {discriminator}."),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), _SECTION),
}
"""Messages by the type of a pydantic error, whose context has their other values."""
_IMPOSSIBLE = N_("{field} cannot be {value}.")


def _sentence(kind: str, name: str, field: str, value: object, context: dict[str, Any]) -> Sentence:
    template = _TEMPLATES.get(kind, _IMPOSSIBLE)
    values = {"name": name, "field": field or N_("The configuration"), "value": _short(value)}
    for key, bound in context.items():
        is_bound = isinstance(bound, int | float)
        values[key] = plain(bound) if is_bound else _short(bound) if key == "tag" else str(bound)
    return Sentence(template, {k: text for k, text in values.items() if f"{{{k}}}" in template})


def _named(part: object) -> str:
    """Return a name as it can be shown; one that is no setting's may be anything."""
    return "".join(character if character.isprintable() else "?" for character in str(part)[:60])


def plain(number: float) -> str:
    """Return a number as one writes it: ``1,000,000``, not ``1e+06``; ``0.001``."""
    is_usual = number == 0 or 1e-4 <= abs(number) < 1e15
    return f"{number:,.15g}" if is_usual else f"{number:g}"


def _short(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
        return plain(value)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
