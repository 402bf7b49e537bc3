"""Link of the mistakes page."""

from __future__ import annotations

from pages.i18n import N_, _
from pages.ui.address import parameters
from pages.ui.address.parameters import SavedStep, Unfit, Written, whole

_MAX = 1_000_000  # the largest number of a class or token that a link may name
Cell = tuple[int, int]


def _cell_of(text: str) -> Cell | None:
    """Return the true and the predicted class of "4,9"; -1 means all others."""
    numbers = [whole(part) for part in text.split(",")]
    pair = tuple(n for n in numbers if n is not None and -1 <= n <= _MAX)
    if len(numbers) != 2 or len(pair) != 2:
        raise Unfit(_("the numbers of two classes, such as 4,9"))
    return pair[0], pair[1]


def _cell_text(cell: Cell | None) -> str:
    return _("nothing") if cell is None else f"{cell[0]},{cell[1]}"


STEP = SavedStep("step", key="mistakes-step")
SHOW = parameters.named(
    "show",
    {
        "worst": N_("Worst first"),
        "groups": N_("By group"),
        "tokens": N_("Hardest tokens"),
        "calibration": N_("Calibration"),
        "scores": N_("BLEU and chrF"),
    },
    key="mistakes-show",
)
BY = parameters.named(
    "by",
    {
        "class": N_("Class"),
        "length": N_("Length"),
        "pattern": N_("Pattern"),
        "kind": N_("Kind of token"),
        "frequency": N_("Frequency"),
        "position": N_("Position"),
    },
    first="",
    key="mistakes-by",
)
ORDER = parameters.named(
    "order", {"loss": N_("Highest loss"), "sure": N_("Most confident")}, key="mistakes-order"
)
CELL = Written("cell", first=None, key="mistakes-cell", reader=_cell_of, writer=_cell_text)
