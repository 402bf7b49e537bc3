"""The parameters of a model, layer by layer: shape, count, the formula with its numbers, share.

Read from the anatomy of the model: nothing is built. A tied weight is counted once, where it stands
first; the other place says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from math import prod

from tfm_core.anatomy import Anatomy, Parameter, Part, anatomy
from tfm_core.anatomy.names import Naming, Scheme, naming_of
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape
from tfm_core.sentences import N_

_LAYER = re.compile(r"^(.*\.layers)\.(\d+)(?:\.|$)")
_EXPERT = re.compile(r"^(.*\.experts)\.(\d+)(?:\.|$)")


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One module with parameters of its own, or (folded) that module in each of ``repeats`` blocks.

    module: its name in the table's scheme, "" where that has none; our_name: ours. shape: of each
    parameter; formula: how the count comes about, with numbers; share: of all parameters of the
    model; tied_to: the parameter whose weight is used here too, else "". path: in the engine;
    matrix: which of several matrices that others keep apart, from 0.
    """

    module: str
    our_name: str
    kind: str
    shape: str
    n_parameters: int
    formula: str
    share: float
    is_trainable: bool = True
    tied_to: str = ""
    repeats: int = 1
    path: str = ""
    matrix: int = 0


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """All rows, one a module, and the sum.

    active: of the total, what acts on a token: of a mixture the experts that it passes alone.
    """

    rows: tuple[ParameterRow, ...]
    total: int
    active: int
    naming: Naming

    @property
    def by_block(self) -> tuple[ParameterRow, ...]:
        """The rows with the equal blocks of a stack in one; each expert by itself."""
        return tuple(self._named(row) for row in _fold(self.rows, _LAYER))

    @property
    def folded(self) -> tuple[ParameterRow, ...]:
        """The rows with the equal blocks of a stack in one, and the experts of a block."""
        return tuple(self._named(row) for row in _fold(_fold(self.rows, _LAYER), _EXPERT))

    def _named(self, row: ParameterRow) -> ParameterRow:
        names = self.naming.of(row.path, row.our_name)
        return replace(row, module=names[row.matrix] if names else "")


_PARTS = (  # what a module's name says -> what it is part of, in words
    ("cross_attention", N_("cross-attention")),
    ("attention", N_("self-attention")),
    ("feed_forward", N_("feed-forward layers")),
    ("embedding", N_("embeddings")),
    ("positions", N_("positions")),
    ("stem", N_("patch projection")),
    ("output", N_("output")),
    ("head", N_("output")),
    ("norm", N_("norms")),
    ("encoder", N_("recurrence")),  # what is left of a stack has no blocks
    ("decoder", N_("recurrence")),
)


def shares_of(rows: Sequence[ParameterRow]) -> dict[str, float]:
    """Return which share of the parameters each part of a model holds, the largest first."""
    sums: dict[str, float] = {}
    for row in rows:
        part = next((label for name, label in _PARTS if name in row.our_name), N_("the rest"))
        sums[part] = sums.get(part, 0.0) + row.share
    return dict(sorted(sums.items(), key=lambda part: -part[1]))


def most_in(rows: Sequence[ParameterRow]) -> str:
    """Say which part of a model holds the most parameters, with its share."""
    part, share = next(iter(shares_of(rows).items()))
    return N_("Largest part: {part}, {share:.0%}.", part=part, share=share)


@lru_cache(maxsize=64)
def parameter_table(config: ModelConfig, shape: Shape, scheme: Scheme = "ours") -> ParameterTable:
    """Return the table of a model, in the order of a state dict.

    scheme: whose names it has; ours are those of the model's family. Raises ValueError where config
    and shape do not fit.
    """
    model = anatomy(config, shape)
    total = sum(parameter.size for parameter in model.parameters)
    naming = naming_of(config, scheme)
    rows = []
    for part in model.modules:
        our_name = own_name(part.path, model.own_names)
        if our_name is not None:  # a table that stands under two names is said once
            row = _row(our_name or "cls", part, total, model)
            rows += _apart(row, part, naming, model.sizes)
    idle = 0
    if getattr(config, "has_experts", False):
        n, top_k = model.sizes["n_experts"], model.sizes["top_k"]
        expert = sum(row.n_parameters for row in rows if _EXPERT.match(row.path)) // n
        idle = (n - top_k) * expert
    return ParameterTable(tuple(rows), total, total - idle, naming)


def _apart(row: ParameterRow, part: Part, naming: Naming, sizes: Sizes) -> list[ParameterRow]:
    """Return the row under its names: one each for matrices that are one here."""
    names = naming.of(row.path, row.our_name)
    if not names:
        return [replace(row, module="")]
    n = len(names)
    formula = row.formula
    if n == 3 and "d_qkv" in part.parameters[0].symbols:
        return _grouped(row, part, names, naming, sizes)
    if n > 1:
        formula = formula.removeprefix(f"{n} x ")
        formula = formula.strip("()") if formula.startswith("(") else formula
    parameters = [
        replace(parameter, shape=(parameter.shape[0] // n, *parameter.shape[1:]))
        for parameter in part.parameters
    ]
    return [
        replace(
            row,
            module=name,
            shape=_shape(parameters, naming, name, sizes),
            n_parameters=row.n_parameters // n,
            formula=formula,
            share=row.share / n,
            matrix=matrix,
        )
        for matrix, name in enumerate(names)
    ]


def _grouped(
    row: ParameterRow, part: Part, names: Sequence[str], naming: Naming, sizes: Sizes
) -> list[ParameterRow]:
    """Return a row each for the matrices of queries, keys and values; heads share the last two."""
    rows = []
    for matrix, name in enumerate(names):
        width = sizes["d_kv" if matrix else "d_q"]
        parameters = [
            replace(parameter, shape=(width, *parameter.shape[1:])) for parameter in part.parameters
        ]
        n = sum(parameter.size for parameter in parameters)
        rows.append(
            replace(
                row,
                module=name,
                shape=_shape(parameters, naming, name, sizes),
                n_parameters=n,
                formula=" + ".join(times(parameter.shape[::-1]) for parameter in parameters),
                share=row.share * n / row.n_parameters,
                matrix=matrix,
            )
        )
    return rows


Sizes = Mapping[str, int]


def _shape(parameters: Sequence[Parameter], naming: Naming, module: str, sizes: Sizes) -> str:
    """Return the parameters of a module with their shapes, as the scheme holds them."""
    named = [(parameter.name.rpartition(".")[2], parameter.shape) for parameter in parameters]
    if naming.scheme == "hugging-face" and naming.family == "decoder-only" and ".h." in module:
        named = [(name, shape[::-1]) for name, shape in named]  # Conv1D: inputs first
    if naming.scheme == "hugging-face":
        is_own = module.endswith(("cls_token", "position_embeddings")) and naming.family == "vit"
        named = [
            ("", (1, *shape[-2:])) if is_own else (name.replace("table", "weight"), shape)
            for name, shape in named
        ]
        if module.endswith("patch_embeddings.projection"):  # a convolution: the same numbers
            patch = (sizes["channels"], sizes["patch_size"], sizes["patch_size"])
            named = [(n, (s[0], *patch) if s[1:] == (prod(patch),) else s) for n, s in named]
    if naming.scheme == "transformer-lens":
        last = module.rpartition(".")[2]
        named = [_in_lens(last, name, shape, sizes) for name, shape in named]
    return ", ".join(f"{name} {times(shape)}".lstrip() for name, shape in named)


def _in_lens(
    last: str, name: str, shape: tuple[int, ...], sizes: Sizes
) -> tuple[str, tuple[int, ...]]:
    """Return a parameter of a module in TransformerLens: heads are an axis, inputs come first."""
    is_bias, letter = len(shape) == 1, last.removeprefix("W_")
    if letter == last:  # a norm
        return name[0], shape
    n_heads = sizes["d_kv"] // sizes["d_head"] if letter in "KV" else sizes["n_heads"]
    heads = (n_heads, sizes["d_head"])
    if letter in "QKV":
        return (f"b_{letter}", heads) if is_bias else (last, (heads[0], shape[1], heads[1]))
    if is_bias:
        return f"b_{letter}", shape
    if letter == "O":
        return last, (*heads, shape[0])
    is_table = letter in ("E", "pos", "token_type")
    return last, shape if is_table else shape[::-1]


def _row(our_name: str, part: Part, total: int, model: Anatomy) -> ParameterRow:
    counted = [parameter for parameter in part.parameters if not parameter.tied_to]
    tied_to = next(
        (parameter.tied_to for parameter in reversed(part.parameters) if parameter.tied_to), ""
    )
    formula = _formula(part, counted, model.sizes)
    if tied_to:
        formula = f"{formula} (tied)" if counted else "0 (tied)"
    n = sum(parameter.size for parameter in counted)
    named = ((parameter.name.rpartition(".")[2], parameter) for parameter in part.parameters)
    return ParameterRow(
        module=our_name,
        our_name=our_name,
        path=part.path or "cls",
        kind=part.layer,
        shape=", ".join(f"{name} {times(parameter.shape)}" for name, parameter in named),
        n_parameters=n,
        formula=formula,
        share=n / total if total else 0.0,
        tied_to=(own_name(tied_to, model.own_names) or "") if tied_to else "",
    )


def times(sizes: Iterable[int]) -> str:
    """Return sizes as a product: ``512 x 2048``."""
    return " x ".join(str(size) for size in sizes)


def _formula(part: Part, counted: Sequence[Parameter], sizes: Sizes) -> str:
    """Return the count as it comes about; the input projections are three matrices in one."""
    if part.path.endswith("in_projection"):
        shape = counted[0].shape
        d = shape[-1]
        if "d_qkv" in counted[0].symbols:  # of queries, and of keys and values, which are fewer
            widths = {"": sizes["d_q"], "2 x ": sizes["d_kv"]}
            bias = len(counted) == 2
            return " + ".join(
                f"{n}({d} x {width}{f' + {width}' if bias else ''})" for n, width in widths.items()
            )
        # a matrix a head, or one for all
        once, out = (f"3 x {shape[1]}", d) if len(shape) == 4 else ("3", shape[0] // 3)
        return f"{once} x ({d} x {out}" + (f" + {out})" if len(counted) == 2 else ")")
    shapes = {one.shape for one in counted}
    if len(counted) > 1 and len(shapes) == 1:
        return f"{len(counted)} x {times(counted[0].shape[::-1])}"
    return " + ".join(times(parameter.shape[::-1]) for parameter in counted)


def _fold(rows: Sequence[ParameterRow], pattern: re.Pattern[str]) -> tuple[ParameterRow, ...]:
    """Return the rows with those in one that differ in the number that a pattern finds alone."""
    n_equal: dict[str, int] = {}
    for row in rows:
        match = pattern.match(row.path)
        if match:
            n_equal[match[1]] = max(n_equal.get(match[1], 0), int(match[2]) + 1)
    folded = []
    for row in rows:
        match = pattern.match(row.path)
        if match is None:
            folded.append(row)
        elif match[2] == "0":
            folded.append(_merged(row, match[1], n_equal[match[1]]))
    return tuple(folded)


def _merged(row: ParameterRow, stack: str, n: int) -> ParameterRow:
    """Return one row for the same module of ``n`` equal blocks or experts."""
    if n == 1:
        return row
    path, our_name = (
        f"{stack}.0–{n - 1}{name.removeprefix(f'{stack}.0')}" for name in (row.path, row.our_name)
    )
    return replace(
        row,
        path=path,
        our_name=our_name,
        n_parameters=n * row.n_parameters,
        formula=f"{n} x ({row.formula})",
        share=n * row.share,
        repeats=n * row.repeats,
    )


def named_parameters(config: ModelConfig, shape: Shape, scheme: Scheme) -> str:
    """Return the modules under the names of a scheme, one inside the other, with their shapes."""
    rows = [row for row in parameter_table(config, shape, scheme).folded if row.module]
    tops = list(dict.fromkeys(_top(row) for row in rows))
    lines: list[str] = []
    before: list[str] = []
    for row in sorted(rows, key=lambda row: tops.index(_top(row))):
        *path, last = row.module.split(".")
        pairs = zip(path, before, strict=False)
        n = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        lines += [f"{'  ' * depth}{path[depth]}" for depth in range(n, len(path))]
        line = row.shape if row.shape.startswith(f"{last} ") else f"{last}: {row.shape}"
        lines.append(f"{'  ' * len(path)}{line}{' (tied)' if row.tied_to else ''}")
        before = path
    return "\n".join(lines)


def _top(row: ParameterRow) -> str:
    return row.module.partition(".")[0]


Names = Mapping[str, str | None]


def own_names(config: ModelConfig, shape: Shape) -> Names:
    """Return path of a module in the engine -> its name in the family, or None for a second name.

    Paths that are not here, and what lies below a path, keep their names.
    """
    return anatomy(config, shape).own_names


def own_name(path: str, names: Names) -> str | None:
    """Return a module's or a parameter's path with the family's name; None for a second name."""
    for old, new in names.items():
        if path == old or path.startswith(f"{old}."):
            return None if new is None else new + path.removeprefix(old)
    return path
