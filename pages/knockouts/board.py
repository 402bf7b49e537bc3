"""The board of the model's parts, one layer per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pages.components.pickers import PartButton, PartGroup, PartRow, knock_board
from pages.i18n import _
from pages.knockouts import state
from pages.ui import show
from tfm_core.inspect.knockouts.measure import Importance
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, Part, name_of, parts_of
from tfm_core.runs.run import Run

Importances = Mapping[Part, Importance]
Draw = Callable[[Part], PartButton]


def board(run: Run, off: Sequence[Part], importances: Importances) -> None:
    """Show every part as a button; a head's colour is the rise of the loss without it."""
    largest = max((each.rise for each in importances.values()), default=0.0)

    def cell(part: Part) -> PartButton:
        importance = importances.get(part)
        heat = None
        if importance is not None:
            heat = max(0.0, importance.rise / largest) if largest > 0 else 0.0
        return PartButton(
            part.code,
            _text(part),
            _(name_of(part)),
            part in off,
            part.kind == "head",
            heat,
            "" if importance is None else _importance_text(importance),
        )

    parts = parts_of(run.experiment)
    layers = dict.fromkeys((p.stack, p.layer) for p in parts if p.layer is not None)
    rows = [_layer_row(parts, *layer, cell) for layer in layers]
    rest = [part for part in parts if part.layer is None]
    if rest:
        rows.append(PartRow(_("Model"), _whole_groups(rest, cell)))
    knock_board(rows, on_pick=state.switch, key=f"knockouts-board-{run.id}")


def _importance_text(importance: Importance) -> str:
    """Return the loss and accuracy without a head, as text."""
    rise, share = signed(importance.rise), show.percent(importance.score.accuracy)
    return _("Without it: loss {rise}, {share} right", rise=rise, share=share)


def signed(change: float) -> str:
    return f"{change:+.4f}" if abs(change) < 0.1 else f"{change:+.2f}"


def _layer_row(parts: Sequence[Part], stack: str, layer: int, cell: Draw) -> PartRow:
    here = [part for part in parts if (part.stack, part.layer) == (stack, layer)]
    groups = []
    for name, (_module, words) in SUBLAYERS.items():
        cells = tuple(cell(part) for part in here if part.sublayer == name)
        if cells:
            groups.append(PartGroup(_(words).capitalize(), cells))
    (whole,) = (cell(part) for part in here if part.kind == "layer")
    title = _("{stack} {layer}", stack=_(STACKS[stack]).capitalize(), layer=layer + 1)
    return PartRow(title, tuple(groups), whole)


def _whole_groups(parts: Sequence[Part], cell: Draw) -> tuple[PartGroup, ...]:
    names = {
        "positions": _("Positions"),
        "mask": _("Masks"),
        "norm": _("Last norm"),
        "sublayer": _("Attention"),
        "start": _("First state"),
        "backward": _("Reading"),
    }
    return tuple(
        PartGroup(title, tuple(cell(part) for part in parts if part.kind == kind))
        for kind, title in names.items()
        if any(part.kind == kind for part in parts)
    )


def _text(part: Part) -> str:
    if part.head is not None:
        return str(part.head + 1)
    if part.layer is not None:
        words = {"sublayer": _("all"), "residual": _("skip"), "norm": _("norm")}
        return words.get(part.kind, _("block"))
    if part.kind == "mask":
        is_causal = (part.stack, part.sublayer) == ("decoder", "self")
        padding = _("padding, cross") if part.sublayer == "cross" else _("padding")
        return _("causal") if is_causal else padding
    words = {"sublayer": _("context"), "start": _("summary"), "backward": _("backwards")}
    return words.get(part.kind, _(STACKS[part.stack]))
