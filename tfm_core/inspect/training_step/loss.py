"""What a loss was computed from: intercepted where ``F.cross_entropy`` is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_CHANGES = (Tensor.softmax, Tensor.argmax, Tensor.float, nn.functional.one_hot)
"""What mistakes put between the logits and the loss."""


@dataclass(frozen=True, slots=True)
class LossCall:
    """What a cross-entropy was called with: logits (N, classes), targets (N,).

    given: what it was called with in their place, where something stands between, by mistake.
    """

    logits: Tensor
    given: Tensor
    targets: Tensor
    ignore_index: int
    smoothing: float


class Listening(TorchFunctionMode):
    """Notes the calls of ``F.cross_entropy``, whichever objective makes them."""

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.calls: list[tuple[LossCall, Tensor]] = []
        self._made: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Note the arguments, and call."""
        named = dict(kwargs or {})
        out = func(*args, **named)
        if func in _CHANGES:
            self._made.append((args[0], out))
        if func is nn.functional.cross_entropy:
            given, targets = args[:2]
            logits = self._origin(given)
            ignored, smoothing = named.get("ignore_index", -100), named.get("label_smoothing", 0.0)
            self.calls.append((LossCall(logits, given, targets, ignored, smoothing), out))
        return out

    def _origin(self, given: Tensor) -> Tensor:
        """Return the logits of which a mistake made what the loss is given."""
        for source, made in reversed(self._made):
            if made is given and source is not given:
                return self._origin(source)
        return given

    def call_of(self, loss: Tensor) -> LossCall | None:
        """Return the call that gave a loss, None where no cross-entropy did."""
        return next((call for call, out in self.calls if out is loss), None)
