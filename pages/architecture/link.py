"""Links of Build and Parameters."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_, _
from pages.ui.address.parameters import Choice


@dataclass(frozen=True)
class _Tab(Choice):
    """A tab, whose widget holds its words."""

    def fits(self, state: object) -> bool:
        return _name_of(str(state)) in self.names

    def state(self, value: str) -> object:
        return _(self.labels[value])

    def value(self, state: object) -> str:
        return _name_of(str(state))


def _name_of(words: str) -> str:
    """Return the name of a tab by its words in English or the page's language."""
    return next((name for name, label in TABS.items() if words in (label, _(label))), words)


TABS = {
    "counts": N_("Parameters"),
    "compute": N_("Compute and memory"),
    "weights": N_("Weights"),
    "activation": N_("Activation"),
    "experts": N_("Experts"),
}
TAB = _Tab("tab", first="counts", key="parameters-tab", names=tuple(TABS), labels=TABS)
