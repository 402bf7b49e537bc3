"""The parameters of a model, layer by layer: shape, count, the formula with its numbers, share.

Read from the anatomy of the model: nothing is built. A tied weight is counted once, where it stands
first; the other place says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tfm_core.anatomy import Parameter, Part, anatomy
from tfm_core.config import ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.sentences import N_

_LAYER = re.compile(r"^(.*\.layers)\.(\d+)(?:\.|$)")


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One module with parameters of its own, or (folded) that module in each of ``repeats`` blocks.

    shape: of each parameter; formula: how the count comes about, with numbers; share: of all
    parameters of the model; tied_to: the parameter whose weight is used here too, else "".
    """

    module: str
    kind: str
    shape: str
    n_parameters: int
    formula: str
    share: float
    is_trainable: bool = True
    tied_to: str = ""
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """All rows, one a module, and the sum."""

    rows: tuple[ParameterRow, ...]
    total: int

    @property
    def folded(self) -> tuple[ParameterRow, ...]:
        """The rows with the equal blocks of a stack in one."""
        return _fold(self.rows)


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


def most_in(rows: Sequence[ParameterRow]) -> str:
    """Say which part of a model holds the most parameters, with its share."""
    sums: dict[str, float] = {}
    for row in rows:
        part = next((words for name, words in _PARTS if name in row.module), N_("the rest"))
        sums[part] = sums.get(part, 0.0) + row.share
    most = max(sums, key=sums.__getitem__)
    return N_("Largest part: {part}, {share:.0%}.", part=most, share=sums[most])


@lru_cache(maxsize=64)
def parameter_table(config: ModelConfig, shape: Shape) -> ParameterTable:
    """Return the table of a model, with its family's names, in the order of a state dict.

    Raises ValueError where config and shape do not fit.
    """
    found = anatomy(config, shape)
    total = sum(parameter.size for parameter in found.parameters)
    rows = []
    for part in found.modules:
        module = own_name(part.path, found.own_names)
        if module is not None:  # a table that stands under two names is said once
            rows.append(_row(module, part, total, found.own_names))
    return ParameterTable(tuple(rows), total)


def _row(module: str, part: Part, total: int, names: Names) -> ParameterRow:
    counted = [one for one in part.parameters if not one.tied_to]
    tied_to = next((one.tied_to for one in reversed(part.parameters) if one.tied_to), "")
    formula = _formula(part, counted)
    if tied_to:
        formula = f"{formula} (tied)" if counted else "0 (tied)"
    n = sum(one.size for one in counted)
    named = ((one.name.rpartition(".")[2], one) for one in part.parameters)
    return ParameterRow(
        module=module,
        kind=part.layer,
        shape=", ".join(f"{name} {times(one.shape)}" for name, one in named),
        n_parameters=n,
        formula=formula,
        share=n / total if total else 0.0,
        tied_to=(own_name(tied_to, names) or "") if tied_to else "",
    )


def times(sizes: Iterable[int]) -> str:
    """Return sizes as a product: ``512 x 2048``."""
    return " x ".join(str(size) for size in sizes)


def _formula(part: Part, counted: Sequence[Parameter]) -> str:
    """Return the count as it comes about; the input projections are three matrices in one."""
    if part.path.endswith("in_projection"):
        shape = counted[0].shape
        d = shape[-1]
        once = f"3 x {shape[1]}" if len(shape) == 4 else "3"  # a matrix a head, or one for all
        return f"{once} x ({d} x {d}" + (f" + {d})" if len(counted) == 2 else ")")
    shapes = {one.shape for one in counted}
    if len(counted) > 1 and len(shapes) == 1:
        return f"{len(counted)} x {times(counted[0].shape[::-1])}"
    return " + ".join(times(parameter.shape[::-1]) for parameter in counted)


def _fold(rows: Sequence[ParameterRow]) -> tuple[ParameterRow, ...]:
    n_layers: dict[str, int] = {}
    for row in rows:
        match = _LAYER.match(row.module)
        if match:
            n_layers[match[1]] = max(n_layers.get(match[1], 0), int(match[2]) + 1)
    folded = []
    for row in rows:
        match = _LAYER.match(row.module)
        if match is None:
            folded.append(row)
        elif match[2] == "0":
            folded.append(_merged(row, match[1], n_layers[match[1]]))
    return tuple(folded)


def _merged(row: ParameterRow, stack: str, n: int) -> ParameterRow:
    """Return one row for the same module of ``n`` equal blocks."""
    if n == 1:
        return row
    rest = row.module.removeprefix(f"{stack}.0")
    return replace(
        row,
        module=f"{stack}.0–{n - 1}{rest}",
        n_parameters=n * row.n_parameters,
        formula=f"{n} x ({row.formula})",
        share=n * row.share,
        repeats=n,
    )


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
