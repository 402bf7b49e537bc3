"""Which stage of a training step is shown, in the address; the model is ``model_choice``'s."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import _
from pages.ui import view_link
from pages.ui.model_choice import ModelView

STAGE = view_link.named(
    "stage",
    {
        "batch": _("Batch and forward"),
        "loss": _("Loss"),
        "backward": _("Backward"),
        "update": _("Update"),
        "after": _("After it"),
        "ways": _("Module or function"),
        "mistakes": _("Famous mistakes"),
    },
    key="training-step-stage",
)


@dataclass(frozen=True, slots=True)
class TrainingStepView(ModelView):
    """What the page shows."""

    stage: str = view_link.linked(STAGE)
