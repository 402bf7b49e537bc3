"""What the attention page can show, and the words of a link for it: pure, no session.

Numbers count from 1 in the link, as on the page, and from 0 inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pages.i18n import _

NAMES = (
    "kind",
    "layer",
    "head",
    "example",
    "step",
    "patch",
    "text",
    "view",
    "cell",
    "pin",
    "deeper",
    "versus",
    "own",
)
OWN = "own"
OWN_KINDS = ("picture", "test", "validation")
VIEWS = ("map", "lines", "arithmetic")
DEEPER = ("heads", "alignment", "explain", "positions", "compare", "take")
MAX_TEXT = 400
MAX_TOKENS = 4096  # the largest position that a link may name


@dataclass(frozen=True, slots=True)
class Offer:
    """What a run has to show: kind -> number of layers, heads, examples, snapshot steps, patches.

    The first kind is the one shown when nothing is chosen, and so is the first patch.
    """

    kinds: Mapping[str, int]
    n_heads: int
    n_examples: int
    steps: tuple[int, ...]
    patches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at. example None: the user's own; step None: always the newest.

    view: how the one head is shown. cell: query and key of the arithmetic. pin: side ("q" or "k")
    and number of the token whose lines are held. deeper: what is shown below. versus: what the view
    is compared with: "layer.head.step.run", from 1, empty where it is the same. own: the example of
    one's own that is no sentence: "picture-" and ``own_picture.to_text``, or "test-" or
    "validation-" and its number from 1.
    """

    kind: str
    layer: int = 0
    head: int = 0
    example: int | None = 0
    step: int | None = None
    patch: str = ""
    text: str = ""
    view: str = VIEWS[0]
    cell: tuple[int, int] | None = None
    pin: tuple[str, int] | None = None
    deeper: str = ""
    versus: str = ""
    own: str = ""

    def own_of(self, kind: str) -> str:
        """Return what follows the kind in ``own``; empty where it is of another kind."""
        said, _dash, rest = self.own.partition("-")
        return rest if said == kind else ""


def to_query(selection: Selection) -> dict[str, str]:
    """Return the part of a link that reopens this view."""
    query = {
        "kind": selection.kind,
        "layer": str(selection.layer + 1),
        "head": str(selection.head + 1),
        "example": OWN if selection.example is None else str(selection.example + 1),
    }
    if selection.step is not None:
        query["step"] = str(selection.step)
    if selection.patch:
        query["patch"] = selection.patch
    if selection.text:
        query["text"] = selection.text
    if selection.view != VIEWS[0]:
        query["view"] = selection.view
    if selection.cell is not None:
        query["cell"] = f"{selection.cell[0] + 1},{selection.cell[1] + 1}"
    if selection.pin is not None:
        query["pin"] = f"{selection.pin[0]}{selection.pin[1] + 1}"
    if selection.deeper:
        query["deeper"] = selection.deeper
    if selection.versus:
        query["versus"] = selection.versus
    if selection.own and selection.example is None:
        query["own"] = selection.own
    return query


def resolve(query: Mapping[str, str], offer: Offer) -> tuple[Selection, list[str]]:
    """Return the nearest view there is to what a link asks for, and a sentence for each change."""
    problems: list[str] = []
    kind = next(iter(offer.kinds))
    if query.get("kind", kind) in offer.kinds:
        kind = query.get("kind", kind)
    else:
        problems.append(_one_of("kind", query["kind"], tuple(offer.kinds), kind))
    patch = offer.patches[0] if offer.patches else ""
    if query.get("patch", patch) in offer.patches:
        patch = query.get("patch", patch)
    elif "patch" in query and offer.patches:
        problems.append(_one_of("patch", query["patch"], offer.patches, patch))
    view, deeper = query.get("view", VIEWS[0]), query.get("deeper", "")
    if view not in VIEWS:
        problems.append(_one_of("view", view, VIEWS, VIEWS[0]))
        view = VIEWS[0]
    if deeper and deeper not in DEEPER:
        problems.append(_one_of("deeper", deeper, DEEPER, _("none")))
        deeper = ""
    own = query.get("example") == OWN
    selection = Selection(
        kind=kind,
        layer=_place(query, "layer", offer.kinds[kind], problems.append),
        head=_place(query, "head", offer.n_heads, problems.append),
        example=None if own else _place(query, "example", offer.n_examples, problems.append),
        step=_step(query, offer.steps, problems.append),
        patch=patch,
        text=query.get("text", "")[:MAX_TEXT],
        view=view,
        cell=_cell(query.get("cell", "")),
        pin=_pin(query.get("pin", "")),
        deeper=deeper,
        versus=query.get("versus", "")[:100],
        own=_own(query.get("own", ""), problems.append),
    )
    return selection, problems


def nearest_step(step: int | None, steps: tuple[int, ...]) -> int:
    """Return the step of ``steps`` that is nearest; the newest for None."""
    return steps[-1] if step is None else min(steps, key=lambda known: abs(known - step))


def _place(query: Mapping[str, str], name: str, count: int, say: Callable[[str], None]) -> int:
    text = query.get(name, "1")
    number = _number(text)
    if number is not None and 1 <= number <= count:
        return number - 1
    used = 1 if number is None else min(max(number, 1), max(count, 1))
    rule = _("{name} is “{text}” in the link, but must be from 1 to {count}; {used} is shown.")
    say(rule.format(name=name, text=text[:20], count=count, used=used))
    return used - 1


def _step(
    query: Mapping[str, str], steps: tuple[int, ...], say: Callable[[str], None]
) -> int | None:
    if "step" not in query:
        return None
    step = _number(query["step"])
    if step is None:
        rule = _("step is “{text}” in the link, but must be a number; the newest is shown.")
        say(rule.format(text=query["step"][:20]))
        return None
    if not steps or step in steps:
        return step
    used = nearest_step(step, steps)
    rule = _("There is no snapshot of step {step}; the nearest, step {used}, is shown.")
    say(rule.format(step=f"{step:,}", used=f"{used:,}"))
    return used


def _cell(text: str) -> tuple[int, int] | None:
    """Return query and key of "3,5"; None where it says neither. Too large ones end at the edge."""
    numbers = [_number(part) for part in text.split(",")]
    if len(numbers) != 2 or not all(number and 1 <= number <= MAX_TOKENS for number in numbers):
        return None
    query, key = numbers
    assert query is not None
    assert key is not None
    return query - 1, key - 1


def _pin(text: str) -> tuple[str, int] | None:
    number = _number(text[1:])
    if text[:1] not in ("q", "k") or not number or not 1 <= number <= MAX_TOKENS:
        return None
    return text[0], number - 1


def _own(text: str, say: Callable[[str], None]) -> str:
    kind, _dash, rest = text.partition("-")
    if (
        not text
        or (kind == "picture" and rest)
        or (kind in OWN_KINDS[1:] and (_number(rest) or 0) > 0)
    ):
        return text
    say(
        _("own is “{text}” in the link, but must be picture-, test- or validation- and which.")
        .format(text=text[:20])
    )  # fmt: skip
    return ""


def _number(text: str) -> int | None:
    """Return a whole number of at most nine digits, or None."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None


def _one_of(name: str, text: str, known: tuple[str, ...], used: str) -> str:
    listed = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    rule = _("{name} is “{text}” in the link, but must be one of {known}; {used} is shown.")
    if len(known) == 1:
        rule = _("{name} is “{text}” in the link, but this model has only {known}.")
    return rule.format(name=name, text=text[:20], known=listed, used=used)
