"""Link of the knock-outs page."""

from __future__ import annotations

import re

from pages.i18n import N_, _
from pages.ui.address import parameters
from pages.ui.address.parameters import Flag, Number, Unfit, Written
from tfm_core.inspect.knockouts.patterns import PATTERNS

MAX_OFF = 400
NOTHING = "none"
_CODE = re.compile(r"(?:encoder|decoder)(?:\.[a-z0-9]{1,9}){1,3}")
Codes = tuple[str, ...]


def _codes_of(text: str) -> Codes | None:
    if text == NOTHING:
        return ()
    codes = tuple(dict.fromkeys(text.split(",")))
    if len(codes) > MAX_OFF or not all(_CODE.fullmatch(code) for code in codes):
        raise Unfit(_("parts such as decoder.1.cross.2, separated by commas, or none"))
    return codes


def _text_of(codes: Codes | None) -> str:
    if codes is None:
        return _("the page's first choice")
    return ",".join(codes) or NOTHING


OFF: Written[Codes | None] = Written(
    "off", reader=_codes_of, writer=_text_of, first=None, key="knockouts-off"
)
HOW = parameters.named(
    "how",
    {"zero": N_("Zero"), "mean": N_("Mean"), "even": N_("Even attention")},
    first="zero",
    key="knockouts-how",
)
ALL = Flag("all", first=False, key="knockouts-all")
EXAMPLE = Number("example", low=0, high=98, first=0, offset=1, key="knockouts-example")
VIEW = parameters.named(
    "view",
    {
        "attention": N_("Attention before and after"),
        "heads": N_("Every head"),
        "pruning": N_("Removing heads"),
        "causes": N_("What decides"),
        "pattern": N_("Your pattern"),
    },
    key="knockouts-view",
)
TEXT = parameters.Text("text", first="", most=200, key="knockouts-text")
CHANGED = parameters.Text("changed", first="", most=200, key="knockouts-changed")
HEAD = parameters.Text("head", first="", most=40, key="knockouts-head")
PATTERN = parameters.named("pattern", PATTERNS, first="even", key="knockouts-pattern")
OTHER = Number("other", low=-1, high=98, first=-1, offset=1, key="knockouts-other")

DRAWN = parameters.named(
    "drawn", {"accuracy": N_("Accuracy"), "loss": N_("Loss")}, key="knockouts-drawn"
)
