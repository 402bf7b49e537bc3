"""Questions with their right answer, and why each wrong answer is wrong; torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """Something to predict. One of ``options`` is right, or, without options, a number.

    answer: the right option, or the number in digits. because: what the reveal says. also: options
    that are right, too.
    wrong: a wrong option, or a wrong number in digits -> why it is not that one. hint: what is
    said to every other wrong answer.
    What would give the answer away is not shown before it: shapes, the names of tensors of which
    not even the shape may be seen; values, those of which only the shape may; topics, paragraphs.
    """

    text: str
    answer: str
    because: str
    options: tuple[str, ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict)
    hint: str = ""
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    def is_right(self, given: str | float) -> bool:
        """Return whether an answer is the right one; a number is right when it is equal."""
        if self.options:
            return given in (self.answer, *self.also)
        return float(given) == float(self.answer)

    def why_not(self, given: str | float) -> str:
        """Return why a wrong answer is wrong, without the right one."""
        name = given if isinstance(given, str) else f"{given:.0f}"
        return self.wrong.get(name, self.hint)


def number_question(
    text: str,
    answer: int,
    because: str,
    *,
    wrong: Mapping[int, str] | None = None,
    hint: str,
    shapes: tuple[str, ...] = (),
    values: tuple[str, ...] = (),
) -> Question:
    """Ask for a whole number; the arguments are those of ``Question``."""
    why = {str(number): reason for number, reason in (wrong or {}).items() if number != answer}
    return Question(text, str(answer), because, wrong=why, hint=hint, shapes=shapes, values=values)


def choice_question(
    text: str,
    answer: str,
    wrong: Mapping[str, str],
    because: str,
    *,
    values: tuple[str, ...] = (),
    topics: tuple[str, ...] = (),
) -> Question:
    """Ask to choose; the options are in the order of the alphabet or of their numbers.

    wrong: the other options, each with why it is not that one.
    """
    why = {option: reason for option, reason in wrong.items() if option != answer}
    options = tuple(sorted([answer, *why], key=_order))
    return Question(text, answer, because, options, why, values=values, topics=topics)


def _order(option: str) -> tuple[bool, float, str]:
    try:
        return False, float(option.replace(",", "")), ""
    except ValueError:
        return True, 0.0, option
