"""The forward pass as a walk: each step's tensors before and after, its code, and its question.

The code of a step is real: run on the tensors before it, under the names it uses, it gives the
tensors after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.sentences import N_

HIDDEN = -1e30  # a score below this was masked


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """values: (rows, columns); a masked score is NaN. starts: the first row and column shown."""

    values: npt.NDArray[np.float64]
    row_axis: str
    column_axis: str
    starts: tuple[int, int]
    is_whole_number: bool


def picked_axes(tensor: Seen) -> list[int]:
    """Return the places of the axes that must be fixed before two are left; not those of size 1."""
    return [i for i in range(tensor.value.dim() - 2) if tensor.axes[i] != "1"]


def extent(tensor: Seen) -> tuple[int, int]:
    """Return how many rows and columns a slice has."""
    sizes = (1, 1, *tensor.shape)
    return sizes[-2], sizes[-1]


def cut(
    tensor: Seen, at: Mapping[str, int], rows: tuple[int, int], columns: tuple[int, int]
) -> Slice:
    """Return the last two axes at an index of the others.

    at: axis -> index, clipped to what there is. rows, columns: first and behind the last.
    """
    value: Any = tensor.value.detach()
    for axis in tensor.axes[:-2]:
        value = value[min(at.get(axis, 0), value.shape[0] - 1)]
    if value.dim() == 1:
        value = value[None]
    value = value[slice(*rows), slice(*columns)]
    whole = not value.is_floating_point()
    numbers = value.double().numpy()
    axes = ("1", *tensor.axes)
    return Slice(
        np.where(numbers < HIDDEN, np.nan, numbers),
        axes[-2],
        axes[-1],
        (rows[0], columns[0]),
        whole,
    )


AXES: dict[str, str] = {
    "B": N_("examples in the batch"),
    "S": N_("source tokens"),
    "T": N_("target tokens"),
    "L": N_("source and target in one sequence"),
    "N": N_("patches, and CLS where there is one"),
    "H": "heads",
    "Q": "queries",
    "K": "keys",
    "d_model": N_("width of a token's vector"),
    "d_head": N_("width of one head: d_model / H"),
    "d_ff": N_("hidden width of the feed-forward layer"),
    "V": N_("tokens of the target vocabulary"),
    "classes": "classes",
    "C": N_("channels of the picture"),
    "Y": N_("rows of pixels"),
    "X": N_("columns of pixels"),
    "patches": N_("patches of the picture"),
    "P": N_("values of one patch"),
    "W": N_("tokens that the model writes by itself"),
    "layers": N_("recurrent layers of the decoder"),
    "1": N_("the same for all"),
}
_OF_ONE_TEXT = {
    "language": ("L", "T"),  # reader -> the axes of its tokens
    "label": ("S",),
    "blanks": ("S",),
    "pooler": ("S",),
}


def axis_words(reader: str) -> dict[str, str]:
    """Return what each axis counts in a walk, by its name; reader: see ``Subject.reader``."""
    if reader == "captioner":
        caption = {"T": N_("tokens of the caption"), "N": N_("patches of the picture")}
        return {**AXES, **caption, "V": N_("tokens of the vocabulary")}
    if reader not in _OF_ONE_TEXT:
        return AXES
    own = dict.fromkeys(_OF_ONE_TEXT[reader], N_("tokens of the text"))
    return {**AXES, **own, "V": N_("tokens of the vocabulary")}


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A tensor of a step.

    name: as the step's code calls it. axes: one name of AXES an axis. words: one an axis, the list
    of token names that stands along it (see ``Subject.words``), or "". label: what it is.
    """

    name: str
    label: str
    value: Tensor
    axes: tuple[str, ...]
    words: tuple[str, ...]

    def __post_init__(self) -> None:
        """Hold the axes to the tensor."""
        assert len(self.axes) == len(self.words) == self.value.dim(), (self.name, self.value.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, in the order of the axes."""
        return tuple(self.value.shape)

    @property
    def has_values(self) -> bool:
        """Whether there are numbers, and not only a shape."""
        return not self.value.is_meta


def seen(name: str, label: str, value: Tensor, axes: str) -> Seen:
    """Return a tensor with its axes written as ``"B H Q:src K:src d_head"``."""
    parts = [part.partition(":") for part in axes.split()]
    return Seen(name, label, value, tuple(p[0] for p in parts), tuple(p[2] for p in parts))


@dataclass(frozen=True, slots=True)
class Question:
    """Something to predict. One of ``options`` is right, or, without options, a number.

    answer: the right option, or the number in digits. because: what the reveal says.
    """

    text: str
    answer: str
    because: str
    options: tuple[str, ...] = ()

    def is_right(self, given: str | float) -> bool:
        """Return whether an answer is the right one; a number is right when it is equal."""
        return given == self.answer if self.options else float(given) == float(self.answer)


@dataclass(frozen=True, slots=True, eq=False)
class WalkStep:
    """One step. topics name the paragraphs that are true of this model's settings.

    name: stands in links and in what leads here, so it stays; a step's number is its place in the
    walk of a model, from 1.
    code runs on ``before`` (and ``names``: modules and plain values) and gives ``after``.
    block: name of the block's module that the step opens, "" for none.
    extra: more tensors worth a look, which the code does not give. shown: name of the tensor to
    show first; the first of ``after`` unless said.
    """

    name: str
    title: str
    topics: tuple[str, ...]
    code: str
    before: tuple[Seen, ...]
    after: tuple[Seen, ...]
    question: Question
    block: str = ""
    extra: tuple[Seen, ...] = ()
    names: Mapping[str, object] = field(default_factory=dict)
    shown: str = ""


def shape_text(sizes: Sequence[int]) -> str:
    """Return sizes as Python writes them: ``(128, 28, 512)``."""
    return f"({', '.join(str(size) for size in sizes)}{',' if len(sizes) == 1 else ''})"


def shape_question(what: str, right: Sequence[int], *others: Sequence[int]) -> Question:
    """Ask for the shape of ``what``; wrong shapes that are equal to another are left out."""
    answer = shape_text(right)
    options = list(dict.fromkeys([answer, *map(shape_text, others)]))
    options.sort(key=lambda text: (len(text), sum(map(ord, text)) * 7 % 11, text))
    return Question(
        N_("Which shape has {what}?", what=what),
        answer,
        N_("It is {answer}: see the axes above.", answer=answer),
        tuple(options),
    )


def number_question(text: str, answer: int, because: str) -> Question:
    """Ask for a whole number."""
    return Question(text, str(answer), because)


def choice_question(text: str, answer: str, wrong: Sequence[str], because: str) -> Question:
    """Ask to choose; the options are in alphabetical order, so that none stands out."""
    return Question(text, answer, because, tuple(sorted(dict.fromkeys([answer, *wrong]))))
