"""The switch of names: whose words the parts of a model are called by."""

from __future__ import annotations

from typing import cast

from pages.app.address import view
from pages.i18n import N_, _, paragraph
from tfm_core.anatomy.names import SCHEME_LABELS, Scheme

NAMES = view.choice(
    N_("Names"),
    {str(name): label for name, label in SCHEME_LABELS.items()},
    help=lambda: paragraph("architecture/names"),
)
NO_NAME = N_("no name")


def choice() -> Scheme:
    """Draw the switch; return the scheme, which the link and the session keep."""
    return cast("Scheme", view.one(NAMES, "names", ""))


def label(scheme: Scheme) -> str:
    return _(SCHEME_LABELS[scheme])
