"""The switch of names: whose words the parts of a model are called by."""

from __future__ import annotations

from typing import cast

from pages.i18n import N_, _, paragraph
from pages.ui.address import parameters, view_link
from tfm_core.anatomy.names import SCHEME_LABELS, Scheme

NAMES = parameters.named(
    "names", {str(name): label for name, label in SCHEME_LABELS.items()}, key="names-scheme"
)
NO_NAME = N_("no name")


def choice() -> Scheme:
    """Draw the switch; return the scheme, which the link and the session keep."""
    return cast("Scheme", view_link.choice(_("Names"), NAMES, help=paragraph("architecture/names")))


def label(scheme: Scheme) -> str:
    return _(SCHEME_LABELS[scheme])
