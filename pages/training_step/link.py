"""Link of the training step page: the stage; ``model_choice`` adds the model."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui.address import parameters, view_link
from pages.ui.settings.model_choice import ModelView

STAGE = parameters.named(
    "stage",
    {
        "batch": N_("Batch and forward"),
        "loss": N_("Loss"),
        "backward": N_("Backward"),
        "update": N_("Update"),
        "after": N_("After it"),
        "ways": N_("Module or function"),
        "mistakes": N_("Famous mistakes"),
    },
    key="training-step-stage",
)


FIRST, LAST = "first", "last"
WEIGHTS = parameters.named(
    "weights",
    {FIRST: N_("First weights"), LAST: N_("Last checkpoint")},
    key="training-step-weights",
)


@dataclass(frozen=True, slots=True)
class TrainingStepView(ModelView):
    """What the page shows."""

    stage: str = view_link.linked(STAGE)
    weights: str = view_link.linked(WEIGHTS)
