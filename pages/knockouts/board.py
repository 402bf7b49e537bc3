"""The model as a board of its parts, a layer a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pages.components.knock_board import Cell, Group, Row, knock_board
from pages.i18n import _
from pages.knockouts import state
from pages.ui import show
from tfm_core.inspect.knockouts.measure import Importance
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, KnockedPart, name_of, parts_of
from tfm_core.runs.run import Run

Worth = Mapping[KnockedPart, Importance]
Draw = Callable[[KnockedPart], Cell]


def board(run: Run, off: Sequence[KnockedPart], worth: Worth) -> None:
    """Show every part as a button; heads carry the colour of what they are worth."""
    largest = max((each.rise for each in worth.values()), default=0.0)

    def cell(part: KnockedPart) -> Cell:
        found = worth.get(part)
        heat = None
        if found is not None:
            heat = max(0.0, found.rise / largest) if largest > 0 else 0.0
        return Cell(
            part.code,
            _text(part),
            _(name_of(part)),
            part in off,
            part.kind == "head",
            heat,
            "" if found is None else worth_words(found),
        )

    parts = parts_of(run.experiment)
    rows = [_layer_row(parts, *place, cell) for place in _layers(parts)]
    rest = [part for part in parts if part.layer is None]
    if rest:
        rows.append(Row(_("Model"), _whole_groups(rest, cell)))
    knock_board(rows, on_pick=state.switch, key=f"knockouts-board-{run.id}")


def worth_words(found: Importance) -> str:
    """Say what a head is worth: how the loss moves without it, and what is still right."""
    words = _("without it the loss moves by {rise}, and {share} are right")
    return words.format(rise=signed(found.rise), share=show.percent(found.score.accuracy))


def signed(change: float) -> str:
    """Return a change of the loss, with its sign."""
    return f"{change:+.4f}" if abs(change) < 0.1 else f"{change:+.2f}"


def _layers(parts: Iterable[KnockedPart]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((p.stack, p.layer) for p in parts if p.layer is not None))


def _layer_row(parts: Sequence[KnockedPart], stack: str, layer: int, cell: Draw) -> Row:
    here = [part for part in parts if (part.stack, part.layer) == (stack, layer)]
    groups = []
    for name, (_module, words) in SUBLAYERS.items():
        cells = tuple(cell(part) for part in here if part.sublayer == name)
        if cells:
            groups.append(Group(_(words).capitalize(), cells))
    (whole,) = (cell(part) for part in here if part.kind == "layer")
    title = _("{stack} {layer}", stack=_(STACKS[stack]).capitalize(), layer=layer + 1)
    return Row(title, tuple(groups), whole)


def _whole_groups(parts: Sequence[KnockedPart], cell: Draw) -> tuple[Group, ...]:
    names = {
        "positions": _("Positions"),
        "mask": _("Masks"),
        "norm": _("Last norm"),
        "sublayer": _("Attention"),
        "start": _("First state"),
        "backward": _("Reading"),
    }
    return tuple(
        Group(title, tuple(cell(part) for part in parts if part.kind == kind))
        for kind, title in names.items()
        if any(part.kind == kind for part in parts)
    )


def _text(part: KnockedPart) -> str:
    """Return what stands on a button."""
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
