"""What a perfect reader of the grammar would reach, where no answer follows from what is seen."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tfm_core.training.losses import input_floor, predicts_others
from tfm_core.training.objectives import TextObjective


class ReadObjective(TextObjective, ABC):
    """Hidden words of texts whose grammar is known, and so the best that can be done."""

    @property
    @abstractmethod
    def _bounds(self) -> tuple[float, float] | None:
        """The loss and the share right of a perfect reader of the validation set.

        None where too many words are hidden at once to work that out.
        """

    def loss_lower_bound(self) -> float | None:
        """Return the loss of a perfect reader on the validation set, None where it is not known.

        Of probabilities taken for logits, what they alone leave.
        """
        floor = input_floor(self.label_smoothing, self.n_classes, self.mistakes)
        if floor is not None or self._bounds is None or predicts_others(self.mistakes):
            return floor
        return self._bounds[0]

    def accuracy_upper_bound(self) -> float | None:
        """Return the share of what is hidden that a perfect reader gets right, in the mean."""
        if self._bounds is None or predicts_others(self.mistakes):
            return None
        return self._bounds[1]
