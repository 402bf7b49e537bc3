"""Early stopping: train until the validation loss has not fallen for a while (Prechelt 1998).

The criterion counts whole validations, so it draws nothing at random and needs three numbers to
go on from a checkpoint as if training had never stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tfm_core.sentences import N_


@dataclass(slots=True)
class Patience:
    """Follows the validation loss after step 0 and says when to stop.

    limit: validations in a row without a new lowest loss before the end; 0 never ends.
    waited: how many there have been since ``best_step``, the step of the lowest loss.
    """

    limit: int = 0
    best_loss: float = math.inf
    best_step: int | None = None
    waited: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return 0 < self.limit <= self.waited

    def update(self, step: int, loss: float, *, counts: bool = True) -> None:
        """Take in the validation loss of a step.

        counts: as one of the validations that are waited for; one between them can only be better.
        """
        if loss < self.best_loss:
            self.best_loss, self.best_step, self.waited = loss, step, 0
        elif counts:
            self.waited += 1

    def reason(self, *, step: int, total: int) -> str | None:
        """Return why training is over at ``step`` of ``total``, or None where all steps are done.

        Where the limit is reached with the very last step, nothing was cut off.
        """
        if not self.is_over or step >= total:
            return None
        if self.best_step is None:
            return N_("Stopped early at step {step:,}: no validation loss was a number.", step=step)
        return N_(
            "Stopped early at step {step:,}: no improvement since step {best:,} (validations: {n}).",
            step=step,
            best=self.best_step,
            n=self.limit,
        )

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep."""
        loss = self.best_loss if math.isfinite(self.best_loss) else None
        return {"best_loss": loss, "best_step": self.best_step, "waited": self.waited}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the state of a checkpoint; one from before patience was counted has none."""
        loss = state.get("best_loss")
        self.best_loss = math.inf if loss is None else float(loss)
        self.best_step = state.get("best_step")
        self.waited = int(state.get("waited", 0))
