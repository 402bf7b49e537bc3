"""A pasted text, line by line: layers of a print or a table, sizes, and what was not understood.

Three forms, which may stand one after another: sizes (``d_model = 512``, ``Encoder(3, 16, 4, 2)``),
what ``print(model)`` says, and a table of parameter names with shapes or counts. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import prod

from tfm_core.inspect.notebook.sizes import CALLS, canonical, value_of
from tfm_core.sentences import N_, StudentError

MAX_CHARACTERS, MAX_LINES, MAX_DEPTH, MAX_SIZE = 60_000, 3_000, 40, 10**9
MAX_LINE = 2_000  # characters, so that no search in one takes long


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer with parameters of its own.

    path: names from the model to it, an index of equal ones as ``0-5``. kind: "linear",
    "embedding", "norm", "conv", "attention" (PyTorch's, whose first matrix no print shows),
    "parameter" or "other". times: how many equal ones it stands for.
    """

    path: str
    kind: str
    into: int
    out: int
    has_bias: bool = False
    times: int = 1
    layer: str = ""
    eps: float | None = None
    side: int = 1

    @property
    def n_parameters(self) -> int:
        """Numbers in one of them."""
        if self.kind == "norm":
            return self.out * (2 if self.has_bias else 1)
        if self.kind == "attention":
            return 3 * self.out * (self.into + 1)
        return self.into * self.out * self.side**2 + self.out * self.has_bias


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that was not understood, from 1, and why."""

    number: int
    text: str
    why: str


@dataclass(slots=True)
class Pasted:
    """What a text says. sizes: by our names of settings; classes: those of the print.

    plain: activations and other layers without parameters, by path. total: the number of
    parameters that the text itself states.
    """

    layers: list[Layer] = field(default_factory=list)
    plain: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)
    dropouts: set[float] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    root: str = ""
    total: int | None = None
    is_table: bool = False
    n_lines: int = 0
    unread: list[Unread] = field(default_factory=list)

    @property
    def counted(self) -> int | None:
        """The parameters of the layers; what the text states where it has none; else None."""
        if not self.layers:
            return self.total
        return sum(one.n_parameters * one.times for one in self.layers)


_ASSIGNED = re.compile(r"^(?:\w{1,40}\s*=\s*)?(?:torch\.)?(?=(?:nn\.)?[A-Za-z_]\w*\()")
_NAME = (
    r"(?:\((?P<name>[\w.\-]{1,80})\):\s*)?(?:(?P<many>\d{1,4}) x )?"
    r"(?P<layer>(?:nn\.)?[A-Za-z_]\w{0,80})"
)
_OPEN, _LEAF = re.compile(rf"{_NAME}\($"), re.compile(rf"{_NAME}\((?P<inside>.*)\),?$")
_CLOSE = re.compile(r"\)+,?$")
_BORDER = re.compile(r"[-+=|\s:_·*#>]*$")
_HEADING = re.compile(r"\W*(modules?|layers?|name|parameters?|params?|shape|count)\b[^\d]*$", re.I)
_TOTAL = re.compile(r"\W*(?:total|trainable|전체|총)\D*?(\d[\d,]*)\D*$", re.I)
_ROW = re.compile(r"\W*(?P<name>[A-Za-z_][\w.\-]{0,160})\W(?P<rest>.*\d.*)$")
_SHAPE = re.compile(r"[\[(]\s*(\d[\d,\s]*)[\])]|(\d+(?:\s?[x×]\s?\d+)+)")
_COUNT = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")
_PAIR = re.compile(r"[\"']?([A-Za-z_][\w.]*)[\"']?\s*[:=]\s*([\"']?)([^\s,;|{}()]+)\2")


@dataclass(frozen=True, slots=True)
class _Open:
    """A module whose bracket is open: its name, how many equal ones it is, its class."""

    name: str
    n: int
    layer: str


def read(text: str) -> Pasted:
    """Return what a text says. Raises ValueError, in a sentence, for one that is too long."""
    if len(text) > MAX_CHARACTERS or text.count("\n") >= MAX_LINES:
        raise StudentError(
            "The text has {n:,} characters; up to {most:,} in {lines:,} lines are read.",
            n=len(text),
            most=MAX_CHARACTERS,
            lines=MAX_LINES,
        )
    pasted, rows = Pasted(), _Rows()
    stack: list[_Open] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = _ASSIGNED.sub("", line.strip().rstrip(";"))
        if not stripped or stripped.startswith(("#", ">>>", "```", "In [", "Out[")):
            continue
        pasted.n_lines += 1
        why: str = N_("The line has more than {most:,} characters.", most=MAX_LINE)
        if len(stripped) <= MAX_LINE:
            why = _line(stripped, stack, pasted, rows)
        if why:
            pasted.unread.append(Unread(number, stripped[:80], why))
    if stack:
        last = len(text.splitlines())
        pasted.unread.append(Unread(last, "", N_("The print ends before its last bracket.")))
    pasted.layers += rows.layers()
    pasted.is_table = bool(rows.found)
    return pasted


def _line(line: str, stack: list[_Open], pasted: Pasted, rows: _Rows) -> str:
    """Take in a line; return why it was not understood, or ""."""
    if _CLOSE.match(line):
        for _bracket in range(line.count(")")):
            if not stack:
                return N_("A bracket closes what is not open.")
            stack.pop()
        return ""
    opened = _OPEN.match(line)
    if opened is not None:
        if len(stack) >= MAX_DEPTH:
            return N_("Modules are nested too deep.")
        stack.append(_Open(opened["name"] or "", _many(opened), opened["layer"]))
        pasted.classes.add(opened["layer"])
        pasted.root = pasted.root or opened["layer"]
        return ""
    leaf = _LEAF.match(line)
    if leaf is not None and (stack or leaf["name"]):
        return _leaf(leaf, stack, pasted)
    if leaf is not None:
        return _call(leaf["layer"], leaf["inside"], pasted)
    if _BORDER.match(line) or _HEADING.match(line):
        return ""
    total = _TOTAL.match(line)
    if total is not None:
        pasted.total = int(total[1].replace(",", ""))
        return ""
    return _pairs(line, pasted) if _is_of_pairs(line) else rows.take(line)


def _many(found: re.Match[str]) -> int:
    return int(found["many"] or 1)


def _path(stack: list[_Open], name: str = "") -> str:
    return ".".join([one.name for one in stack if one.name] + ([name] if name else []))


def _leaf(found: re.Match[str], stack: list[_Open], pasted: Pasted) -> str:
    layer, inside = found["layer"], found["inside"]
    path = _path(stack, found["name"] or "")
    pasted.classes.add(layer)
    if any(one.layer == "SharedNorm" for one in stack):  # counted where it stands first
        return ""
    if layer == "Dropout":
        share = _decimal((re.search(r"p=([\d.e+-]+)", inside) or ["", "0"])[1])
        pasted.dropouts |= {share} if share is not None else set()
        return ""
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d{1,12}(?![\w.])", inside)]
    make = next((make for name, make in _LAYERS if name.search(layer)), None)
    if make is None or not numbers:
        pasted.plain[path] = layer
        is_plain = not numbers or _PLAIN.search(layer)
        return "" if is_plain else N_("“{layer}” is no layer that is built here.", layer=layer[:40])
    made = make(inside, numbers)
    if made is None:
        return N_("“{layer}” does not say its sizes.", layer=layer[:40])
    if not (0 < made.into <= MAX_SIZE and 0 < made.out <= MAX_SIZE):
        return N_("“{layer}” has a size that no model has.", layer=layer[:40])
    made = replace(made, path=path, layer=layer, times=prod(one.n for one in stack) * _many(found))
    if layer == "NonDynamicallyQuantizableLinear":  # its attention's first matrix is not printed
        hidden = replace(made, path=_path(stack, "in_proj"), kind="attention", has_bias=True)
        pasted.layers.append(hidden)
    pasted.layers.append(made)
    return ""


def _linear(inside: str, numbers: list[int]) -> Layer | None:
    into, out = (_named(inside, name) for name in ("in_features", "out_features"))
    if into is None or out is None:
        if len(numbers) < 2:
            return None
        into, out = numbers[:2]
    return Layer("", "linear", into, out, "bias=False" not in inside)


def _conv1d(inside: str, _numbers: list[int]) -> Layer | None:
    """Return the linear layer of GPT-2 in Transformers: nf outputs of nx inputs."""
    into, out = _named(inside, "nx"), _named(inside, "nf")
    return None if into is None or out is None else Layer("", "linear", into, out, True)


def _embedding(_inside: str, numbers: list[int]) -> Layer | None:
    return Layer("", "embedding", numbers[0], numbers[1]) if len(numbers) > 1 else None


def _norm(inside: str, numbers: list[int]) -> Layer | None:
    eps = re.search(r"eps=([\d.e+-]+)", inside)
    decimal = _decimal(eps[1]) if eps else None
    has_bias = "bias=False" not in inside
    return Layer("", "norm", 1, numbers[0], has_bias, eps=decimal)


def _rms_norm(inside: str, numbers: list[int]) -> Layer | None:
    made = _norm(inside, numbers)
    return None if made is None else replace(made, has_bias=False)


def _conv2d(inside: str, numbers: list[int]) -> Layer | None:
    if len(numbers) < 3:
        return None
    into, out, side = numbers[:3]
    return Layer("", "conv", into, out, "bias=False" not in inside, side=min(side, 1_024))


_LAYERS: tuple[tuple[re.Pattern[str], Callable[[str, list[int]], Layer | None]], ...] = (
    (re.compile(r"Linear$"), _linear),
    (re.compile(r"^Conv1D$"), _conv1d),
    (re.compile(r"^(?!.*Rotary).*Embedding$"), _embedding),
    (re.compile(r"RMS_?Norm", re.I), _rms_norm),
    (re.compile(r"T5LayerNorm"), _rms_norm),
    (re.compile(r"Layer_?Norm", re.I), _norm),
    (re.compile(r"^Conv2d$"), _conv2d),
)
_PLAIN = re.compile(r"relu|gelu|silu|swish|tanh|softmax|sigmoid|Identity|Flatten|Drop|Rotary", re.I)


def _decimal(text: str) -> float | None:
    try:
        number = float(text[:20])
    except ValueError:
        return None
    return number if 0 <= number < 1 else None


def _named(inside: str, name: str) -> int | None:
    found = re.search(rf"\b{name}=(\d{{1,12}})\b", inside)
    return int(found[1]) if found else None


def _call(layer: str, inside: str, pasted: Pasted) -> str:
    """Take in a call such as ``Encoder(3, 16, 4, 2)``."""
    plain = [one.strip() for one in inside.split(",") if one.strip() and "=" not in one]
    names = CALLS.get(layer, ())
    if len(plain) > len(names):
        return (
            N_("Name the numbers of “{layer}”: d_model = …", layer=layer[:40])
            if not names
            else N_("“{layer}” has at most {n} numbers without a name.", layer=layer, n=len(names))
        )
    pasted.root = pasted.root or layer
    pasted.classes.add(layer)
    for name, value in zip(names, plain, strict=False):
        pasted.sizes[name] = value_of(value)
    return _pairs(inside, pasted)


def _is_of_pairs(line: str) -> bool:
    found = _PAIR.findall(line)
    return bool(found) and not re.search(r"\.(weight|bias)\b", line)


def _pairs(line: str, pasted: Pasted) -> str:
    unknown = []
    for name, _quote, value in _PAIR.findall(line):
        ours = canonical(name)
        if ours is None:
            unknown.append(name)
        elif ours == "parameters":
            pasted.total = int(re.sub(r"\D", "", value)[:12] or 0)
        elif ours:
            pasted.sizes[ours] = value_of(value)
    if unknown:
        return N_("Unknown: {names}.", names=", ".join(one[:30] for one in unknown[:5]))
    return ""


class _Rows:
    """The rows of a table: names of tensors with their shapes, or at least their counts."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, tuple[tuple[int, ...], int]]] = {}

    def take(self, line: str) -> str:
        row = _ROW.match(line)
        if row is None or not ("." in row["name"] or "|" in line or _SHAPE.search(row["rest"])):
            return N_("Neither a size, a layer nor a row of a table.")
        name, rest = row["name"], row["rest"]
        module, _dot, kind = name.rpartition(".")
        if kind.startswith("in_proj_"):
            module, kind = f"{module}.in_proj", kind.removeprefix("in_proj_")
        elif kind not in ("weight", "bias"):
            module, kind = name, "value"
        found = _SHAPE.search(rest)
        sizes = tuple(int(n) for n in re.findall(r"\d{1,10}", found[0])) if found else ()
        outside = _SHAPE.sub(" ", rest) if found else rest
        counts = [int(one.replace(",", "")[:13]) for one in _COUNT.findall(outside)]
        n = prod(sizes) if sizes else (counts[-1] if counts else 0)
        if not 0 < n <= MAX_SIZE:
            return N_("The row has no count.")
        if counts and sizes and counts[-1] != n:
            return N_("{shape} is not {count:,} numbers.", shape=str(sizes), count=counts[-1])
        if kind in self.found.setdefault(module, {}):
            return N_("“{name}” stands here twice.", name=name[:60])
        self.found[module][kind] = sizes, n
        return ""

    def layers(self) -> Iterator[Layer]:
        """Yield the layers. Where only counts are known, the norms say how wide the model is."""
        widths = [
            parts["bias"][1]
            for parts in self.found.values()
            if {"weight", "bias"} <= parts.keys() and parts["bias"][1] == parts["weight"][1]
        ]
        width = max(set(widths), key=widths.count) if widths else 0
        for module, parts in self.found.items():
            yield _of_row(module, parts, width)


_TABLES = re.compile(r"emb|wte|wpe|table|pos", re.I)
_NARROWS = re.compile(r"fc2|down|linear_?2|dense_?2|w_?2$|output|\.2$", re.I)


def _of_row(module: str, parts: dict[str, tuple[tuple[int, ...], int]], width: int) -> Layer:
    shape, n = parts.get("weight") or next(iter(parts.values()))
    has_bias = "bias" in parts and "weight" in parts
    n_bias = parts["bias"][1] if has_bias else 0
    if len(shape) == 1 or (has_bias and n == n_bias) or (not shape and n == width):
        kind = "norm" if "weight" in parts else "parameter"
        return Layer(module, kind, 1, n, has_bias, layer="LayerNorm" if kind == "norm" else "")
    if len(shape) == 4:
        return Layer(module, "conv", shape[1], shape[0], has_bias, side=shape[2])
    if "weight" not in parts:
        return Layer(module, "parameter", 1, n)
    if has_bias:
        out = n_bias
    elif len(shape) == 2:
        out = shape[0]
    elif _TABLES.search(module) and width:
        return Layer(module, "embedding", n // width, width)
    elif not width or n % width:
        return Layer(module, "parameter", 1, n)
    else:
        out = width if n == width * width or _NARROWS.search(module) else n // width
    if not has_bias and len(shape) == 2 and _TABLES.search(module):
        return Layer(module, "embedding", shape[0], shape[1])
    return Layer(module, "linear", n // out, out, has_bias)
