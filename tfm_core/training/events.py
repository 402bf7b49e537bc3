"""What training yields: frozen events with plain numbers, in the order in which they happen.

``Started``, and with torch.compile ``Compiled``; then for step 0 ``SnapshotDue`` and ``Measured``;
for each later step ``Turned`` for each setting that was turned before it, ``Measured`` and
``SnapshotDue`` where they are due and then ``Step``, which closes the step; last, unless the config
leaves the test split unopened, ``Measured`` on it, and ``Finished``. A ``Step`` is the last event
of its step, so it is the moment for a checkpoint. Losses are mean cross-entropies in nats,
accuracies 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Split = Literal["validation", "test"]
Weights = Literal["last", "average"]


@dataclass(frozen=True, slots=True)
class Started:
    """Training begins, or continues, at ``step``.

    chance: accuracy of guessing every token or class alike; start_loss: ln(classes), the loss of
    such guessing; floor: the lowest loss that the targets allow, None where unknown; ceiling: the
    accuracy of a perfect reader where several answers may be right, else None;
    reads_per_epoch: how often an epoch reads each token, more than once where windows overlap;
    remark: a notice about the data.
    """

    step: int
    total_steps: int
    steps_per_epoch: int
    n_parameters: int
    device: str
    chance: float
    start_loss: float
    floor: float | None
    ceiling: float | None = None
    reads_per_epoch: float = 1.0
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """The model was compiled, where the config asks for it; before the first step, or on resuming.

    seconds: that it took, no part of the training's own; None where it was not compiled, and why
    not is the ``reason``, in a sentence.
    """

    step: int
    seconds: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One batch was learned from; loss and accuracy are those of this batch, before the update.

    gradients: the norm of each part's gradient before clipping, by name, at the first step and
    where the weights are measured; else empty. balance: how unequally the batch's tokens are spread
    over the experts, 1 where alike; None without experts, and not in the reported loss.
    """

    step: int
    epoch: float
    loss: float
    accuracy: float
    learning_rate: float
    grad_norm: float
    examples_per_second: float
    memory_bytes: int
    gradients: Mapping[str, float] = field(default_factory=dict, hash=False)
    balance: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The weights of a step were measured on unseen examples.

    step: on the test split that of the best weights where there is patience, else the last.
    weights: those that are trained, as the step left them, or their average over the steps; where
    there is one, each validation measures the last first and then the average.
    accuracy: of target tokens (text) or pictures; sequence_accuracy: of whole targets, text only.
    Whole-sequence accuracy equals that of greedy decoding: if every token is right given the true
    ones before it, decoding follows the truth, and the other way round.
    """

    step: int
    split: Split
    loss: float
    accuracy: float
    sequence_accuracy: float | None
    weights: Weights = "last"


@dataclass(frozen=True, slots=True)
class SnapshotDue:
    """Now is the moment to look inside.

    keeps_weights: at one of the few steps whose weights show how the model came to learn.
    """

    step: int
    keeps_weights: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """Training is over; ``seconds`` were spent in it, pauses left out.

    reason: why it is over before its last step, in a sentence, else None. best_step: the step with
    the lowest validation loss, None where none was measured.
    """

    step: int
    seconds: float
    reason: str | None = None
    best_step: int | None = None


@dataclass(frozen=True, slots=True)
class Turned:
    """A setting was turned: it has this value from ``step`` on.

    setting: one of ``config.turns.TURNABLE``.
    """

    step: int
    setting: str
    value: float


Event = Started | Compiled | Turned | Step | Measured | SnapshotDue | Finished

_NAMES: dict[type[Any], str] = {
    Started: "started",
    Compiled: "compiled",
    Turned: "turned",
    Step: "step",
    Measured: "measured",
    SnapshotDue: "snapshot",
    Finished: "finished",
}
_FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in _NAMES}


def to_record(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object: ``{"event": "step", ...}``.

    JSON knows no NaN and no infinity: None stands for them, as in the norm of a gradient that
    overflowed fp16, whose step was left out.
    """
    kind = type(event)  # the values are plain: asdict would copy each of them deeply, at each step
    record = {
        "event": _NAMES[kind],
        **{name: _strict(getattr(event, name)) for name in _FIELDS[kind]},
    }
    if isinstance(event, Step):
        del record["gradients"]  # of nearly all steps there are none
        if event.gradients:
            record["gradients"] = {part: _strict(norm) for part, norm in event.gradients.items()}
        if event.balance is None:
            del record["balance"]
    if isinstance(event, Measured) and event.weights == "last":
        del record["weights"]  # as nearly all are
    return record


def _strict(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
