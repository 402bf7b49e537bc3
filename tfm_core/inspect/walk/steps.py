"""The forward pass as a walk: each step's tensors before and after, its code, and its question.

The code of a step is real: run on the tensors before it, under the names it uses, it gives the
tensors after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.questions import Question
from tfm_core.sentences import N_, joined

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN = -1e30  # a score below this was masked
_MAP_STEPS = {  # family and kind of attention -> name of the step; elsewhere "scores"
    ("encoder-decoder", "decoder"): "decoder-attention",
    ("encoder-decoder", "cross"): "cross-attention",
    ("captioner", "decoder"): "decoder-attention",
    ("captioner", "picture"): "cross-attention",
}


def step_of_map(family: str, kind: str) -> str:
    """Return the name of the step that makes an attention map. kind: a key of ``labels.KINDS``."""
    return _MAP_STEPS.get((family, kind), "scores")


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """values: (rows, columns); a masked score is NaN. starts: the first row and column shown."""

    values: npt.NDArray[np.float64]
    row_axis: str
    column_axis: str
    starts: tuple[int, int]
    is_whole_number: bool


def picked_axes(tensor: StepTensor) -> list[int]:
    """Return the places of the axes that must be fixed before two are left; not those of size 1."""
    return [i for i in range(tensor.value.dim() - 2) if tensor.axes[i] != "1"]


def extent(tensor: StepTensor) -> tuple[int, int]:
    """Return how many rows and columns a slice has."""
    sizes = (1, 1, *tensor.looked_at.shape)
    return sizes[-2], sizes[-1]


def cut(
    tensor: StepTensor, at: Mapping[str, int], rows: tuple[int, int], columns: tuple[int, int]
) -> Slice:
    """Return the last two axes at an index of the others.

    at: axis -> index, clipped to what there is. rows, columns: first and behind the last.
    """
    value: Any = tensor.looked_at.detach()
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
    "N": N_("patches, and CLS if any"),
    "H": N_("heads"),
    "Q": N_("queries"),
    "K": N_("keys"),
    "d_model": N_("width of a token's vector"),
    "d_head": N_("width of one head"),
    "d_q": N_("width of the queries of all heads"),
    "d_kv": N_("width of the keys of all heads"),
    "d_ff": N_("hidden width of feed-forward"),
    "E": N_("experts"),
    "V": N_("tokens of the target vocabulary"),
    "classes": N_("classes"),
    "C": N_("channels"),
    "Y": N_("rows of pixels"),
    "X": N_("columns of pixels"),
    "patches": N_("patches of the picture"),
    "P": N_("values of a patch"),
    "positions": N_("possible positions"),
    "W": N_("tokens the model writes"),
    "layers": N_("decoder layers"),
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
class StepTensor:
    """A tensor of a step.

    name: as the step's code calls it. axes: one name of AXES an axis. words: one an axis, the list
    of token names that stands along it (see ``Subject.words``), or "". label: what it is. numbers:
    those of the first example, (1, …) where there is a batch, of a tensor that has only its shape.
    """

    name: str
    label: str
    value: Tensor
    axes: tuple[str, ...]
    words: tuple[str, ...]
    numbers: Tensor | None = None

    def __post_init__(self) -> None:
        """Hold the axes to the tensor."""
        assert len(self.axes) == len(self.words) == self.value.dim(), (self.name, self.value.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, in the order of the axes."""
        return tuple(self.value.shape)

    @property
    def looked_at(self) -> Tensor:
        """The tensor whose numbers are shown."""
        return self.value if self.numbers is None else self.numbers

    @property
    def has_values(self) -> bool:
        """Whether there are numbers, and not only a shape."""
        return not self.looked_at.is_meta


def seen(name: str, label: str, value: Tensor, axes: str) -> StepTensor:
    """Return a tensor with its axes written as ``"B H Q:src K:src d_head"``."""
    parts = [part.partition(":") for part in axes.split()]
    return StepTensor(name, label, value, tuple(p[0] for p in parts), tuple(p[2] for p in parts))


_MAX_NUMBERS = 4


def first_numbers(tensor: StepTensor, example: int, words: Sequence[str] = ()) -> str:
    """Return the first few numbers of an example, in the order of memory; "" without numbers.

    words: the word of each id, shown in front of it.
    """
    if not tensor.has_values:
        return ""
    value: Any = tensor.looked_at.detach()
    if tensor.axes[:1] == ("B",):
        value = value[min(example, len(value) - 1)]
    line = value.reshape(-1)[:_MAX_NUMBERS]
    form = ".3f" if value.is_floating_point() else "d"
    shown = [
        "masked" if number < HIDDEN else format(number if form == ".3f" else int(number), form)
        for number in line.tolist()
    ]
    if form == "d" and words:
        shown = [f"{word} {number}" for word, number in zip(words, shown, strict=False)]
    return ", ".join(shown) + (", …" if value.numel() > _MAX_NUMBERS else "")


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
    before: tuple[StepTensor, ...]
    after: tuple[StepTensor, ...]
    question: Question
    block: str = ""
    extra: tuple[StepTensor, ...] = ()
    names: Mapping[str, object] = field(default_factory=dict)
    shown: str = ""

    @property
    def tensors(self) -> tuple[StepTensor, ...]:
        """All tensors of the step, those that it makes first."""
        return (*self.after, *self.extra, *self.before)

    @property
    def hidden_shapes(self) -> frozenset[str]:
        """Names of the tensors whose shape is the question, and of results of the same shape."""
        target = set(self.question.shapes)
        shapes = {one.shape for one in self.tensors if one.name in target}
        made = {one.name for one in (*self.after, *self.extra) if one.shape in shapes}
        return frozenset(target | made)

    @property
    def hidden(self) -> frozenset[str]:
        """Names of the tensors whose numbers are not to be seen before the answer."""
        return self.hidden_shapes | frozenset(self.question.values)


def shape_text(sizes: Sequence[int]) -> str:
    """Return sizes as Python writes them: ``(128, 28, 512)``."""
    return f"({', '.join(str(size) for size in sizes)}{',' if len(sizes) == 1 else ''})"


def shape_question(
    target: StepTensor, reason: str, *wrong: tuple[Sequence[int], str], given: str = ""
) -> Question:
    """Ask for the shape of a tensor, which is hidden until then.

    reason: where its axes come from. wrong: shapes, each with why it is not
    that one; a shape that is equal to one before it is left out. given: what must be known first.
    """
    answer = shape_text(target.shape)
    why = dict(reversed([(shape_text(shape), reason) for shape, reason in wrong]))
    why.pop(answer, None)
    options = sorted(
        [answer, *why], key=lambda text: (len(text), sum(map(ord, text)) * 7 % 11, text)
    )
    text = N_("What is the shape of `{name}`?", name=target.name)
    letters = f"({', '.join(target.axes)}{',' if len(target.axes) == 1 else ''})"
    return Question(
        joined(given, text) if given else text,
        answer,
        joined(N_("It is {letters} = {answer}.", letters=letters, answer=answer), reason),
        tuple(options),
        why,
        shapes=(target.name,),
    )
