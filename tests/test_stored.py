"""Records from files: a value that fits is taken, any other is named, and nothing else breaks."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from tfm_core.reading import Unreadable
from tfm_core.stored import Moment, Stored, WrongValue, line, number, unstored, whole

pytestmark = pytest.mark.quick


@dataclass(frozen=True, slots=True)
class Sample:
    name: Annotated[str, line(5)]
    created: Moment
    kind: Literal["a", "b"] = "a"
    count: Annotated[int, whole(2, 7)] = 3
    share: Annotated[float, number(0, 1)] | None = None
    live: Annotated[bool, unstored(False)] = False


SOUND = {"name": "run", "created": "2026-11-22T00:00:00+00:00"}
STORED = Stored(Sample, "sample.json")
WRONG = {
    "name": ["", "a\nb", "longer", "\ud800", 3, None],
    "created": ["", "2026-13-01", 5, None],
    "kind": ["c", None, [], {}, True],
    "count": [1, 8, 3.0, "3", True, None, 10**400, float("nan")],
    "share": [-0.1, 1.1, "1", True, 10**400, float("nan"), float("inf"), [0.5]],
}
MADE_UP = {"name": "new", "created": "2026-01-01T00:00:00+00:00"}
CASES = [(name, value) for name, values in WRONG.items() for value in values]


def test_values_that_fit_make_the_record_and_unknown_ones_are_ignored():
    made = STORED.read(SOUND | {"kind": "b", "share": 1, "live": True, "colour": "red"})
    assert made == Sample("run", SOUND["created"], "b", 3, 1.0, live=False)
    assert STORED.read(STORED.plain(made)) == made


def test_a_value_that_does_not_fit_is_named_and_alone_replaced():
    for name, value in CASES:
        sentence = f"the value of “{name}” in sample.json is invalid"
        with pytest.raises(WrongValue, match=sentence) as caught:
            STORED.read(SOUND | {name: value})
        assert (caught.value.name, caught.value.is_missing) == (name, False)
        sound = SOUND | {"kind": "b", "count": 7, "share": 0.5}
        found, clause = STORED.salvage(sound | {name: value}, lambda: MADE_UP)
        default = MADE_UP | {"kind": "a", "count": 3, "share": None}
        assert found == Sample(**sound | {name: default[name]})
        assert clause == sentence


def test_what_is_missing_is_MADE_UP_in_silence_or_refused():
    with pytest.raises(WrongValue) as caught:
        STORED.read({"name": "run"})
    assert (caught.value.name, caught.value.is_missing) == ("created", True)
    assert STORED.salvage({"name": "run"}, lambda: SOUND) == (STORED.read(SOUND), None)
    with pytest.raises(Unreadable):
        STORED.salvage({"name": "run"})


def test_what_is_no_set_of_named_values_is_no_record():
    for values in [None, 3, "text", [1], [["name", "run"]]]:
        with pytest.raises(Unreadable):
            STORED.read(values)
