"""Link of the attention page: pure functions, no session.

Numbers count from 1 in the link, as on the page, and from 0 inside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pages.i18n import _
from pages.ui.address import view_link
from pages.ui.address.parameters import (
    Choice,
    Number,
    Parameter,
    Text,
    Unfit,
    Written,
    one_of,
    whole,
)
from tfm_core.probe.labels import RowNames

OWN = "own"
OWN_KINDS = ("picture", "test", "validation")
ARITHMETIC = "arithmetic"
VIEWS = ("map", "lines", ARITHMETIC)
DEEPER = ("answer", "compare", "heads", "alignment", "explain", "rollout", "positions", "take")
ROWS = ("written", "read")
SMALL_MAPS = ("picture", "matrix")
MISTAKES = "mistakes"
MAX_TEXT = 1200
MAX_TOKENS = 4096  # the largest position that a link may name


@dataclass(frozen=True)
class Example(Parameter[int | None]):
    """An example of so many, from 0; None is the user's own, which the link calls ``own``."""

    count: int

    def parse(self, text: str) -> int | None:
        """Return the example; the nearest there is."""
        if text == OWN:
            return None
        most = max(self.count - 1, 0)
        return Number(self.query, first=0, low=0, high=most, offset=1).parse(text)

    def fits(self, state: object) -> bool:
        return state is None or (isinstance(state, int) and 0 <= state < self.count)

    def text(self, value: int | None) -> str:
        return OWN if value is None else str(value + 1)


@dataclass(frozen=True)
class SnapshotStep(Parameter[int | None]):
    """The step of a snapshot; None is the newest, whichever that is."""

    steps: tuple[int, ...]

    def parse(self, text: str) -> int | None:
        """Return the step; the nearest that has a snapshot."""
        step = whole(text)
        if step is None:
            raise Unfit(one_of(self.steps) if self.steps else _("a number"))
        if self.steps and step not in self.steps:
            raise Unfit(one_of(self.steps), nearest_step(step, self.steps))
        return step

    def fits(self, state: object) -> bool:
        return state is None or state in self.steps

    def words(self, value: int | None) -> str:
        return _("the newest") if value is None else f"{value:,}"


def nearest_step(step: int | None, steps: tuple[int, ...]) -> int:
    """Return the step of ``steps`` that is nearest; the newest for None."""
    return steps[-1] if step is None else min(steps, key=lambda snapshot: abs(snapshot - step))


def _cell_of(text: str) -> tuple[int, int] | None:
    positions = [_position_of(part) for part in text.split(",")]
    if len(positions) != 2:
        raise Unfit(_("two positions, such as 3,5"))
    return positions[0], positions[1]


def _cell_text(cell: tuple[int, int] | None) -> str:
    return _("nothing") if cell is None else f"{cell[0] + 1},{cell[1] + 1}"


def _pin_of(text: str) -> tuple[str, int] | None:
    if text[:1] not in ("q", "k"):
        raise Unfit(_("q or k and a position, such as q3"))
    return text[0], _position_of(text[1:])


def _pin_text(pin: tuple[str, int] | None) -> str:
    return _("nothing") if pin is None else f"{pin[0]}{pin[1] + 1}"


def _position_of(text: str) -> int:
    number = whole(text)
    if number is None or not 1 <= number <= MAX_TOKENS:
        raise Unfit(_("made of positions from 1 to {most}", most=MAX_TOKENS))
    return number - 1


def _stretch_of(text: str) -> tuple[int, int] | None:
    first, dash, last = text.partition("-")
    if not dash or _position_of(last) < _position_of(first):
        raise Unfit(_("two positions, such as 5-30"))
    return _position_of(first), _position_of(last) + 1


def _stretch_text(tokens: tuple[int, int] | None) -> str:
    return _("all") if tokens is None else f"{tokens[0] + 1}-{tokens[1]}"


def _own_of(text: str) -> str:
    kind, _dash, rest = text.partition("-")
    is_number = kind in OWN_KINDS[1:] and (whole(rest) or 0) > 0
    if text in ("", MISTAKES) or (kind == "picture" and rest) or is_number:
        return text
    raise Unfit(_("mistakes, or picture-, test- or validation- and which"))


_MAX = 98  # layers and heads that a link may name, less one; a run has its own number of each
KIND = Choice("kind", names=(), first="", is_always_said=True)
LAYER = Number("layer", low=0, high=_MAX, first=0, offset=1, is_always_said=True)
HEAD = Number("head", low=0, high=_MAX, first=0, offset=1, is_always_said=True)
EXAMPLE = Example("example", count=_MAX, first=0, is_always_said=True)
STEP = SnapshotStep("step", steps=(), first=None)
PATCH = Choice("patch", names=(), first="")
TEXT = Text("text", most=MAX_TEXT, first="")
VIEW = Choice("view", names=VIEWS, first=VIEWS[0])
CELL = Written("cell", reader=_cell_of, writer=_cell_text, first=None)
PIN = Written("pin", reader=_pin_of, writer=_pin_text, first=None)
DEEPER_VIEW = Choice("deeper", names=DEEPER, first="")
VERSUS = Text("versus", most=100, first="")
ROW_NAMES = Choice("rows", names=ROWS, first="")
SMALL = Choice("small", names=SMALL_MAPS, first=SMALL_MAPS[0])
TOKENS = Written("tokens", reader=_stretch_of, writer=_stretch_text, first=None)
OWN_EXAMPLE = Written("own", reader=_own_of, writer=str, first="")


@dataclass(frozen=True, slots=True)
class Offer:
    """What a run has to show: kind -> number of layers, heads, examples, snapshot steps, patches.

    The first kind is the one shown when nothing is chosen, and so is the first patch. first_heads:
    layer and head to open on, by kind.
    """

    kinds: Mapping[str, int]
    n_heads: int
    n_examples: int
    steps: tuple[int, ...]
    patches: tuple[str, ...] = ()
    first_heads: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def first_head(self, kind: str) -> tuple[int, int]:
        layer, head = self.first_heads.get(kind, (0, 0))
        return min(layer, max(self.kinds[kind] - 1, 0)), min(head, max(self.n_heads - 1, 0))


@dataclass(frozen=True, slots=True)
class Selection:
    """What is shown. example None: the user's own; step None: always the newest.

    view: how the one head is shown. cell: query and key of the arithmetic. pin: side ("q" or "k")
    and number of the pinned token. deeper: what is shown below. versus: what the view
    is compared with: "layer.head.step.run", from 1, empty where it is the same. own: the example of
    one's own that is no sentence: "picture-" and ``own_picture.to_text``, or "test-" or
    "validation-" and its number from 1, or "mistakes" for the first of them. rows: what rows are
    called by, empty as their kind of attention says. small: how a picture's heads are drawn.
    tokens: the stretch of a text that maps show, the second behind its end; None for all.
    """

    kind: str = view_link.linked(KIND)
    layer: int = view_link.linked(LAYER)
    head: int = view_link.linked(HEAD)
    example: int | None = view_link.linked(EXAMPLE)
    step: int | None = view_link.linked(STEP)
    patch: str = view_link.linked(PATCH)
    text: str = view_link.linked(TEXT)
    view: str = view_link.linked(VIEW)
    cell: tuple[int, int] | None = view_link.linked(CELL)
    pin: tuple[str, int] | None = view_link.linked(PIN)
    deeper: str = view_link.linked(DEEPER_VIEW)
    versus: str = view_link.linked(VERSUS)
    own: str = view_link.linked(OWN_EXAMPLE)
    rows: str = view_link.linked(ROW_NAMES)
    small: str = view_link.linked(SMALL)
    tokens: tuple[int, int] | None = view_link.linked(TOKENS)

    @property
    def row_names(self) -> RowNames | None:
        """Return what rows are called by, None as their kind of attention says."""
        return cast("RowNames", self.rows) if self.rows else None

    @property
    def stretch(self) -> tuple[int, int] | None:
        """Return the chosen stretch; a picture has none."""
        return None if self.kind in ("patches", "picture") else self.tokens

    @property
    def source(self) -> str:
        """Return whose example it is: "probe", "mistakes" or "own"."""
        if self.example is not None:
            return "probe"
        is_mistake = self.own == MISTAKES or bool(self.own_of("validation"))
        return MISTAKES if is_mistake else OWN

    def own_of(self, kind: str) -> str:
        """Return what follows the kind in ``own``; empty where it is of another kind."""
        prefix, _dash, rest = self.own.partition("-")
        return rest if prefix == kind else ""


NAMES = tuple(parameter.query for parameter in view_link.parameters(Selection).values())


def to_query(selection: Selection) -> dict[str, str]:
    is_own = selection.example is None
    return view_link.write(selection if is_own else dataclasses.replace(selection, own=""))


def resolve(query: Mapping[str, str], offer: Offer) -> tuple[Selection, tuple[str, ...]]:
    """Return the nearest view there is to what a link asks for, and a sentence for each change."""
    kinds = tuple(offer.kinds)
    kind_text = query.get(KIND.query, "")
    kind = kind_text if kind_text in offer.kinds else kinds[0]
    is_said = LAYER.query in query or HEAD.query in query
    layer, head = (0, 0) if is_said else offer.first_head(kind)
    fitting: dict[str, Parameter[Any]] = {
        "kind": replace(KIND, names=kinds, first=kinds[0]),
        "layer": replace(LAYER, high=max(offer.kinds[kind] - 1, 0), first=layer),
        "head": replace(HEAD, high=max(offer.n_heads - 1, 0), first=head),
        "example": replace(EXAMPLE, count=offer.n_examples),
        "step": replace(STEP, steps=offer.steps),
    }
    if offer.patches:
        fitting["patch"] = replace(PATCH, names=offer.patches, first=offer.patches[0])
    else:
        query = {name: text for name, text in query.items() if name != PATCH.query}
    return view_link.read(Selection, query, **fitting)
