"""The bar of a tour, and the button that resumes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pages.components.component import component, is_whole, plain
from pages.i18n import _

_bar = component("tour", css=["tour.css"])
_resume = component("tour_resume", css=["tour_resume.css"])

_MAX_TEXT = 200  # characters of a place or a run that a browser may send


@dataclass(frozen=True, slots=True)
class TourButton:
    """A button of the bar. name: what is sent."""

    name: str
    label: str
    is_primary: bool = False
    is_off: bool = False


def tour_bar(
    *,
    place: str,
    question: Mapping[str, Any] | None,
    buttons: Sequence[TourButton],
    on_answer: Callable[[int], None],
    key: str,
    **shown: Any,
) -> str | None:
    """Draw the bar; return the name of the button that was just pressed, or None.

    place: names the stop, also in the browser's memory. question: its text, options, the indices
    chosen and right (None while it is not shown), and the verdict. on_answer: called with the index
    of an option. shown: run, its id; label of the region; count, title, text; wait: how far what it
    waits for is; happened: that it has happened, for who hears the page; outlines and veils:
    selectors, ``host >>> inner`` inside a component; veiled is what would give the answer away.
    """
    count = 0 if question is None else len(question["options"])
    names = {button.name for button in buttons if not button.is_off} | {"leave"}

    def answered(sent: object) -> None:
        index = _of_place(sent, place)
        if is_whole(index) and 0 <= index < count:
            on_answer(index)

    words = {
        "leave": _("Leave the tour"),
        "fold": _("Fold the tour"),
        "unfold": _("Unfold the tour"),
        "checking": _("Measuring …"),
    }
    bar = {"place": place, "question": question, "buttons": [asdict(one) for one in buttons]}
    data = {**bar, **shown, "words": words}
    result = _bar(plain(data), on={"go": None, "answer": answered}, key=key)
    pressed = _of_place(result.go, place)
    return pressed if isinstance(pressed, str) and pressed in names else None


def _of_place(sent: object, place: str) -> Any:
    """Return what was sent from a place, None from another or where it is no pair."""
    return sent[1] if isinstance(sent, list) and len(sent) == 2 and sent[0] == place else None


def resume(
    tours: Mapping[str, tuple[str, int]], *, is_shown: bool, key: str
) -> tuple[str, str] | None:
    """Draw the button, if the browser has left a tour; return place and run once it is pressed.

    tours: name -> title and number of stops. Both results are unchecked.
    """
    data = {
        "tours": {name: {"title": title, "count": n} for name, (title, n) in tours.items()},
        "label": _("Resume ({n} of {count})", n="{n}", count="{count}"),
        "is_shown": is_shown,
    }
    result = _resume(plain(data), on={"resume": None}, key=key, width="content")
    sent = result.resume
    if not (isinstance(sent, list) and len(sent) == 2):
        return None
    if not all(isinstance(part, str) and len(part) <= _MAX_TEXT for part in sent):
        return None
    return sent[0], sent[1]
