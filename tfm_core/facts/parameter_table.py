"""The parameters of a model, layer by layer: shape, count, the formula with its numbers, share.

Read from a model laid out on the ``meta`` device, so that the largest one costs no memory. A tied
weight is counted once, where it stands first; the other place says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tfm_core.config import ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.facts.own_names import own_name, own_names
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import nn

_LAYER = re.compile(r"^(.*\.layers)\.(\d+)(?:\.|$)")


@dataclass(frozen=True, slots=True)
class Row:
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

    rows: tuple[Row, ...]
    total: int

    @property
    def folded(self) -> tuple[Row, ...]:
        """The rows with the equal blocks of a stack in one."""
        return _fold(self.rows)


_PARTS = (  # what a module's name says -> what it is part of, in words
    ("cross_attention", N_("cross-attention")),
    ("attention", N_("self-attention")),
    ("feed_forward", N_("the feed-forward layers")),
    ("embedding", N_("the embeddings")),
    ("positions", N_("the positions")),
    ("stem", N_("the patch projection")),
    ("output", N_("the output")),
    ("head", N_("the output")),
    ("norm", N_("the norms")),
    ("encoder", N_("the recurrence")),  # what is left of a stack has no blocks
    ("decoder", N_("the recurrence")),
)


def most_in(rows: Sequence[Row]) -> str:
    """Say which part of a model holds the most parameters, with its share."""
    sums: dict[str, float] = {}
    for row in rows:
        part = next((words for name, words in _PARTS if name in row.module), N_("the rest"))
        sums[part] = sums.get(part, 0.0) + row.share
    most = max(sums, key=sums.__getitem__)
    return N_("The largest part here, {share:.0%}, is in {part}.", part=most, share=sums[most])


def laid_out(config: ModelConfig, shape: Shape) -> nn.Module:
    """Return the model on the ``meta`` device: shapes and names, no numbers, no memory."""
    # late: a page that shows tables is painted before torch is loaded
    from tfm_core.models.build import build_model
    from tfm_core.models.unfilled import unfilled

    with unfilled():
        return build_model(config, shape).to("meta")


@lru_cache(maxsize=64)
def parameter_table(config: ModelConfig, shape: Shape) -> ParameterTable:
    """Return the table of a model, with its family's names.

    Raises ValueError where config and shape do not fit.
    """
    table, names = table_of(laid_out(config, shape)), own_names(config, shape)
    rows = []
    for row in table.rows:
        module = own_name(row.module, names)
        if module is not None:  # a table that stands under two names is said once
            tied_to = (own_name(row.tied_to, names) or "") if row.tied_to else ""
            rows.append(replace(row, module=module, tied_to=tied_to))
    return ParameterTable(tuple(rows), table.total)


def table_of(model: nn.Module) -> ParameterTable:
    """Return the table of any module."""
    total = sum(parameter.numel() for parameter in model.parameters())
    owners: dict[int, str] = {}
    rows = []
    for name, module in model.named_modules(remove_duplicate=False):
        own = dict(module.named_parameters(recurse=False))
        if own:
            rows.append(_row(name, module, own, owners, total))
    return ParameterTable(tuple(rows), total)


def _row(
    name: str, module: nn.Module, own: dict[str, nn.Parameter], owners: dict[int, str], total: int
) -> Row:
    tied, counted = "", []
    for key, parameter in own.items():
        full = f"{name}.{key}".removeprefix(".")
        if id(parameter) in owners:
            tied = owners[id(parameter)]
        else:
            owners[id(parameter)] = full
            counted.append(parameter)
    n = sum(parameter.numel() for parameter in counted)
    formula = _formula(name, module, counted)
    if tied:
        formula = f"{formula} (tied)" if counted else "0 (tied)"
    return Row(
        module=name,
        kind=type(module).__name__,
        shape=", ".join(f"{key} {times(p.shape)}" for key, p in own.items()),
        n_parameters=n,
        formula=formula,
        share=n / total if total else 0.0,
        is_trainable=all(p.requires_grad for p in own.values()),
        tied_to=tied,
    )


def times(sizes: Iterable[int]) -> str:
    """Return sizes as a product: ``512 x 2048``."""
    return " x ".join(str(size) for size in sizes)


def _formula(name: str, module: nn.Module, counted: Sequence[nn.Parameter]) -> str:
    """Return the count as it comes about; the input projections are three matrices in one."""
    if name.endswith("in_projection") and counted[0].ndim == 4:  # a matrix a head
        _three, heads, d, _d = counted[0].shape
        return f"3 x {heads} x ({d} x {d}" + (f" + {d})" if len(counted) == 2 else ")")
    if name.endswith("in_projection"):
        d = counted[0].shape[1]
        return f"3 x ({d} x {d}" + (f" + {d})" if len(counted) == 2 else ")")
    if type(module).__name__ == "LayerNorm" and len(counted) == 2:
        return f"2 x {counted[0].numel()}"
    return " + ".join(times(parameter.shape[::-1]) for parameter in counted)


def _fold(rows: Sequence[Row]) -> tuple[Row, ...]:
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


def _merged(row: Row, stack: str, n: int) -> Row:
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
