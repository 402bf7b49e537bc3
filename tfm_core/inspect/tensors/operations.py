"""The operations that the models are made of: their code, their arguments, and the parser.

Their words are in ``content/<language>/tensors.md``. What is typed is read by a small parser of our
own; nothing of it is evaluated. torch is imported where it is needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from tfm_core.sentences import N_, Paragraph, StudentError, words

if TYPE_CHECKING:
    from torch import Tensor


Values = Mapping[str, Any]
Kind = Literal["moves", "fills", "places", "computes", "makes"]
ArgumentKind = Literal["int", "ints", "number", "equation", "shape", "choice"]
MAX_ELEMENTS, MAX_AXES, MAX_RESULT = 64, 4, 128
_LARGEST, _MAX_INTS, _MAX_DIGITS = 64, 6, 5
_INT = re.compile(r"[-+]?\d+")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
_EQUATION = re.compile(r"[a-z]{0,4}(,[a-z]{0,4})?->[a-z]{0,4}")


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of an operation.

    kind: how its text is read, and how the code writes it. choices: name -> how the code has it.
    """

    name: str
    label: str
    help: str
    kind: ArgumentKind
    default: str
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TensorOperation:
    """One operation.

    kind: "moves" elements; "fills" some with new ones; "places", which changes each where it is;
    "computes" new ones from many; "makes" a tensor from nothing.
    shape: of the first input at the start; second: of the second, None without one.
    template: the code, with the parameters in braces. where: where the app's models use it; step:
    the walk's step that shows it. numbers: the content of x at the start, empty for 0, 1, 2 …
    """

    name: str
    help: str
    kind: Kind
    shape: str
    template: str
    parameters: tuple[Argument, ...]
    where: str
    step: str | None
    second: str | None
    numbers: str

    def code(self, values: Values) -> str:
        """Return the lines that are shown and run, with the parameters as they were read."""
        texts = {}
        for one in self.parameters:
            if not one.choices:
                texts[one.name] = _WRITTEN[one.kind](values[one.name])
        for one in self.parameters:
            if one.choices:
                texts[one.name] = one.choices[values[one.name]].format(**texts)
        return self.template.format(**texts)

    def run(self, inputs: Sequence[Tensor], values: Values) -> dict[str, Any]:
        """Run the code on ``x`` and ``b``; return all names that it made, ``y`` the result."""
        import torch

        code = self.code(values)
        if "torchvision" in code:  # a torch without CUDA needs its operators declared first
            import_module("tfm_core.data.torchvision_import")
        names: dict[str, Any] = {"torch": torch, **dict(zip("xb", inputs, strict=False))}
        with torch.random.fork_rng(devices=[]):
            exec(code, names)  # of our templates and of parsed numbers
        return names


def listed(numbers: tuple[int, ...]) -> str:
    """Return numbers as arguments: ``2, 3``."""
    return ", ".join(map(str, numbers))


def tupled(numbers: tuple[int, ...]) -> str:
    """Return numbers as Python writes a tuple: ``(2,)``."""
    return f"({listed(numbers)}{',' if len(numbers) == 1 else ''})"


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "int": str,
    "ints": listed,
    "shape": tupled,
    "number": lambda value: f'float("{value}")' if math.isinf(value) else f"{value:g}",
    "equation": lambda equation: f'"{equation}", x{", b" if "," in equation else ""}',
}


def parse_arguments(operation: TensorOperation, texts: Mapping[str, str]) -> dict[str, Any]:
    """Read what was typed for each parameter. Raises ValueError, in a sentence."""
    readers = {"int": int_of, "ints": ints_of, "number": number_of, "shape": shape_of}
    settings: dict[str, Any] = {}
    for one in operation.parameters:
        typed = texts.get(one.name, one.default)
        if one.kind == "choice":
            settings[one.name] = typed if typed in one.choices else one.default
        elif one.kind == "equation":
            settings[one.name] = equation_of(typed)
        else:
            settings[one.name] = readers[one.kind](typed, one.label)
    return settings


def ints_of(text: str, what: str) -> tuple[int, ...]:
    """Read whole numbers, as ``2, 3`` or ``(2, 3)`` or ``2 3``; nothing typed is no number.

    Raises ValueError, in a sentence that names ``what``.
    """
    inner = text.strip()
    if inner[:1] in {"(", "["} and inner[-1:] in {")", "]"}:
        inner = inner[1:-1]
    parts = [part for part in re.split(r"[\s,x×]+", inner) if part]
    for part in parts:
        values = {"what": what, "part": part[:20], "largest": _LARGEST}
        if not _INT.fullmatch(part):
            raise StudentError("{what}: “{part}” is not a whole number, such as 2.", **values)
        if len(part) > _MAX_DIGITS:
            raise StudentError("{what}: “{part}” is too long. The limit is {largest}.", **values)
    numbers = tuple(int(part) for part in parts)
    if len(numbers) > _MAX_INTS:
        raise StudentError(
            "{what}: type at most {most_ints} numbers, not {n_numbers}.",
            what=what,
            n_numbers=len(numbers),
            most_ints=_MAX_INTS,
        )
    for number in numbers:
        if abs(number) > _LARGEST:
            values = {"what": what, "number": number, "largest": _LARGEST}
            raise StudentError("{what}: {number} is too large. The limit is {largest}.", **values)
    return numbers


def int_of(text: str, what: str) -> int:
    """Read one whole number. Raises ValueError, in a sentence."""
    numbers = ints_of(text, what)
    if len(numbers) != 1:
        values = {"what": what, "n_numbers": len(numbers)}
        raise StudentError("{what}: type one whole number, not {n_numbers}.", **values)
    return numbers[0]


def shape_of(text: str, what: str = "Shape") -> tuple[int, ...]:
    """Read a shape of at most 4 axes and 64 elements. Raises ValueError, in a sentence."""
    shape = ints_of(text, what)
    values: dict[str, Any] = {"what": what, "n": len(shape), "most_axes": MAX_AXES}
    if not 1 <= len(shape) <= MAX_AXES:
        raise StudentError("{what}: type 1 to {most_axes} axes, not {n}.", **values)
    if min(shape) < 1:
        values = {"what": what, "shape": min(shape)}
        raise StudentError("{what}: an axis needs at least 1 element, not {shape}.", **values)
    if math.prod(shape) > MAX_ELEMENTS:
        raise StudentError(
            "{what}: {product} = {n} elements are too many. The limit is {most_elements}.",
            what=what,
            product=" × ".join(map(str, shape)),
            n=math.prod(shape),
            most_elements=MAX_ELEMENTS,
        )
    return shape


def numbers_of(text: str, count: int) -> tuple[float, ...]:
    """Read exactly ``count`` numbers, parted by commas or spaces. Raises ValueError."""
    parts = [part for part in re.split(r"[\s,;]+", text.strip()) if part]
    for part in parts:
        if not _NUMBER.fullmatch(part):
            raise StudentError("“{part}” is not a number, such as 1, 0.5 or -2.", part=part[:20])
    if len(parts) != count:
        values = {"count": count, "n_parts": len(parts)}
        raise StudentError("The shape needs {count} numbers, not {n_parts}.", **values)
    numbers = tuple(float(part) for part in parts)
    if any(abs(number) > 9999 for number in numbers):
        raise StudentError("Numbers must be between -9999 and 9999.")
    return numbers


def number_of(text: str, what: str) -> float:
    """Read one number; ``-inf`` and ``inf`` are numbers too. Raises ValueError, in a sentence."""
    word = text.strip().lower()
    if word not in {"inf", "-inf"} and not _NUMBER.fullmatch(word):
        values = {"what": what, "text": text[:20]}
        raise StudentError("{what}: “{text}” is not a number, such as -1 or -inf.", **values)
    return float(word)


def equation_of(text: str) -> str:
    """Read an einsum equation of one or two inputs. Raises ValueError, in a sentence."""
    equation = re.sub(r"\s+", "", text)
    if "->" not in equation:
        raise StudentError("The equation needs an arrow, as in ij,jk->ik.")
    if not _EQUATION.fullmatch(equation):
        raise StudentError(Paragraph("tensors/no-equation", equation=equation[:30]))
    return equation


_CHOICES: dict[str, Mapping[str, str]] = {
    "sign": {"+": "+", "*": "*"},
    "keepdim": {"False": "", "True": ", keepdim=True"},
    "which": {
        "future": "mask = torch.ones({mask}, dtype=torch.bool).triu(1)",
        N_("last column"): "mask = torch.zeros({mask}, dtype=torch.bool)\nmask[..., -1] = True",
        N_("larger than 2"): "mask = x > 2",
    },
    "type": {name: name for name in ("int64", "float16", "bool", "float32")},
    "device": {name: name for name in ("cpu", "cuda", "mps")},
    "list": {
        text: text
        for text in ("[1, 2, 3]", "[1, 2.5, 3]", "[True, False]", "[[1, 2, 3], [4, 5, 6]]")
    },
}
"""Name of a parameter -> its choices, and how the code has each."""
_READ_AS: dict[str, ArgumentKind] = {
    "sizes": "ints",
    "dims": "ints",
    "mask": "shape",
    "value": "number",
    "equation": "equation",
}
"""Name of a parameter -> how its text is read, if not as one whole number."""


def _op(
    name: str,
    kind: Kind,
    shape: str,
    template: str,
    *,
    walk: str | None = None,
    second: str | None = None,
    numbers: str = "",
    **starts: str,
) -> TensorOperation:
    """Return an operation with its words. starts: what its parameters hold at first."""
    texts = words("choices/tensors/parameters") | words(f"choices/tensors/{name}")
    has_shape = kind == "makes" or name == "assert"  # such sizes are a shape, and -1 is none
    parameters = []
    for part, start in starts.items():
        choices = _CHOICES.get(part, {})
        read_as: ArgumentKind = "choice" if choices else _READ_AS.get(part, "int")
        if part == "sizes" and has_shape:
            read_as = "shape"
        help = texts.get(f"{part}_help", "")
        parameters.append(Argument(part, texts[part], help, read_as, start, choices))
    return TensorOperation(
        name=name,
        help=texts["help"],
        kind=kind,
        shape=shape,
        template=template,
        parameters=tuple(parameters),
        where=texts["where"],
        step=walk,
        second=second,
        numbers=numbers,
    )


_TO_TENSOR = """from torchvision import transforms

picture = x.byte().numpy()  # (Y, X, C), as in a file
y = transforms.ToTensor()(picture)"""
_SEQUENTIAL = """from torch import nn

torch.manual_seed({seed})
layers = nn.Linear(x.size(-1), 4), nn.ReLU(), nn.Linear(4, 2)
y = nn.Sequential(*layers)(x).detach()"""
_ASSERT = 'assert x.shape == {sizes}, f"x is {{tuple(x.shape)}}"\ny = x'
_FILL = "{which}\ny = x.masked_fill(mask, {value})"
_SEEDED = "generator = torch.Generator().manual_seed({seed})\ny = torch."
_RANDINT = _SEEDED + "randint({low}, {high}, {sizes}, generator=generator)"
_UNEVEN, _DECIMALS = "2, 7, 1, 3, 0, 6", "0, 0.5, 1.9, -1.9, 2, -3"
_COLOURS = "255, 0, 51, 204, 102, 153, 0, 255, 25, 50, 75, 100"

_ALL = (
    _op("view", "moves", "2, 6", "y = x.view({sizes})", walk="split", sizes="2, 2, 3"),
    _op("reshape", "moves", "3, 4", "y = x.reshape({sizes})", walk="merge", sizes="2, 6"),
    _op("unsqueeze", "moves", "2, 3", "y = x.unsqueeze({dim})", walk="masks", dim="1"),
    _op("squeeze", "moves", "2, 1, 3", "y = x.squeeze({dim})", dim="1"),
    _op("expand", "moves", "1, 4", "y = x.expand({sizes})", sizes="3, 4"),
    _op(
        "transpose",
        "moves",
        "2, 3",
        "y = x.transpose({first}, {other})",
        walk="split",
        first="0",
        other="1",
    ),
    _op("permute", "moves", "2, 3, 2", "y = x.permute({dims})", dims="1, 0, 2"),
    _op("contiguous", "moves", "2, 3", "y = x.contiguous()", walk="merge"),
    _op("CHW to HWC", "moves", "3, 2, 3", "y = x.permute(1, 2, 0)  # C, Y, X -> Y, X, C"),
    _op("cat", "moves", "2, 3", "y = torch.cat([x, b], dim={dim})", second="2, 3", dim="0"),
    _op("stack", "moves", "2, 3", "y = torch.stack([x, b], dim={dim})", second="2, 3", dim="0"),
    _op("hstack", "moves", "2, 3", "y = torch.hstack([x, b])", second="2, 2"),
    _op("matmul", "computes", "2, 3", "y = x @ b", walk="scores", second="3, 2"),
    _op("mm", "computes", "2, 3", "y = torch.mm(x, b)", second="3, 2"),
    _op(
        "einsum",
        "computes",
        "2, 3",
        "y = torch.einsum({equation})",
        second="4, 3",
        equation="qd,kd->qk",
    ),
    _op("broadcast", "computes", "4, 3", "y = x {sign} b", second="3", sign="+"),
    _op("softmax", "places", "3, 3", "y = x.softmax({dim})", walk="softmax", dim="-1"),
    _op(
        "mean",
        "computes",
        "2, 3",
        "y = x.mean({dim}{keepdim})",
        numbers=_UNEVEN,
        dim="-1",
        keepdim="False",
    ),
    _op("argmax", "computes", "2, 3", "y = x.argmax({dim})", numbers=_UNEVEN, dim="-1"),
    _op(
        "masked_fill",
        "fills",
        "4, 4",
        _FILL,
        walk="masking",
        which="future",
        mask="4, 4",
        value="-inf",
    ),
    _op("tril", "fills", "4, 4", "y = x.tril({diagonal})", walk="masks", diagonal="0"),
    _op("triu", "fills", "4, 4", "y = x.triu({diagonal})", diagonal="1"),
    _op(
        "to",
        "places",
        "2, 3",
        'y = x.to("{device}", torch.{type})',
        numbers=_DECIMALS,
        type="int64",
        device="cpu",
    ),
    _op("ToTensor", "computes", "2, 2, 3", _TO_TENSOR, numbers=_COLOURS),
    _op("assert", "moves", "2, 3", _ASSERT, sizes="2, 3"),
    _op("numel", "computes", "2, 3", "y = torch.tensor(x.numel())"),
    _op("Sequential", "computes", "2, 3", _SEQUENTIAL, seed="0"),
    _op(
        "arange",
        "makes",
        "1",
        "y = torch.arange({start}, {end}, {step})",
        start="0",
        end="6",
        step="1",
    ),
    _op("zeros", "makes", "1", "y = torch.zeros({sizes})", sizes="2, 4"),
    _op("ones", "makes", "1", "y = torch.ones({sizes})", sizes="2, 4"),
    _op("tensor", "makes", "1", "y = torch.tensor({list})", list="[1, 2, 3]"),
    _op("randint", "makes", "1", _RANDINT, low="0", high="10", sizes="2, 4", seed="0"),
    _op(
        "rand", "makes", "1", _SEEDED + "rand({sizes}, generator=generator)", sizes="2, 4", seed="0"
    ),
    _op(
        "randn",
        "makes",
        "1",
        _SEEDED + "randn({sizes}, generator=generator)",
        sizes="2, 4",
        seed="0",
    ),
)
OPERATIONS: dict[str, TensorOperation] = {operation.name: operation for operation in _ALL}
