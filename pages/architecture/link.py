"""Links of Build and Parameters."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_, _
from pages.ui.address import view_link
from pages.ui.address.parameters import Choice, name_of
from pages.ui.settings.model_choice import VERSUS, SizedModelView
from pages.ui.settings.names_choice import NAMES


@dataclass(frozen=True)
class _Tab(Choice):
    """A tab, whose widget holds its words."""

    def fits(self, state: object) -> bool:
        return name_of(str(state), self.labels) in self.names

    def state(self, value: str) -> object:
        return _(self.labels[value])

    def value(self, state: object) -> str:
        return name_of(str(state), self.labels)


TABS = {
    "counts": N_("Parameters"),
    "compute": N_("Compute and memory"),
    "weights": N_("Weights"),
    "activation": N_("Activation"),
    "experts": N_("Experts"),
}
TAB = _Tab("tab", first="counts", key="parameters-tab", names=tuple(TABS), labels=TABS)


@dataclass(frozen=True, slots=True)
class BuildView(SizedModelView):
    """What the page Build shows."""

    names: str = view_link.linked(NAMES)


@dataclass(frozen=True, slots=True)
class ParametersView(SizedModelView):
    """What the page Parameters shows."""

    versus: str = view_link.linked(VERSUS)
    names: str = view_link.linked(NAMES)
    tab: str = view_link.linked(TAB)
