"""Links of Build and Parameters."""

from __future__ import annotations

from dataclasses import dataclass

from pages.ui.address import view_link
from pages.ui.settings.model_choice import VERSUS, SizedModelView
from pages.ui.settings.names_choice import NAMES


@dataclass(frozen=True, slots=True)
class BuildView(SizedModelView):
    """What the page Build shows."""

    names: str = view_link.linked(NAMES)


@dataclass(frozen=True, slots=True)
class ParametersView(SizedModelView):
    """What the page Parameters shows."""

    versus: str = view_link.linked(VERSUS)
    names: str = view_link.linked(NAMES)
