"""A progress bar on a terminal for a run that trains in this process."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

if TYPE_CHECKING:
    from tfm_core.training.events import Event


class Bar:
    """Shows steps, loss and the last validation; only where standard error is a terminal."""

    def __init__(self, total: int, *, is_shown: bool) -> None:
        """Prepare for ``total`` steps."""
        self.has_begun = False
        self._facts: dict[str, str] = {}
        self._bar: tqdm[Any] = tqdm(
            total=total, unit="step", disable=None if is_shown else True, dynamic_ncols=True
        )

    def __enter__(self) -> Bar:
        """Return the bar."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave it as it stands."""
        self._bar.close()

    def on_event(self, event: Event) -> None:
        """Show an event of the training."""
        from tfm_core.training.events import Compiled, Measured, Started, Step

        if isinstance(event, Started):
            self.has_begun = True
            if event.remark and not self._bar.disable:
                self._bar.write(event.remark, file=sys.stderr)
            self._bar.update(event.step)
        elif isinstance(event, Compiled):
            said = event.reason or f"torch.compile took {event.seconds:.1f} s."
            if not self._bar.disable:
                self._bar.write(said, file=sys.stderr)
        elif isinstance(event, Measured):
            is_average = (event.split, event.weights) == ("validation", "average")
            self._facts["averaged" if is_average else event.split] = f"{event.accuracy:.1%}"
        elif isinstance(event, Step):
            self._facts["loss"] = f"{event.loss:.3f}"
            self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update(1)
