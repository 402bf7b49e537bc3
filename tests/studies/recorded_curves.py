"""Curves of real trainings, well and ill."""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tfm_core.choices.config import Experiment, from_query
from tfm_core.runs.curves import Curves
from tfm_core.runs.status import Status
from tfm_core.training.progress import LOSS_DIVERGED, TrainingDiverged

FOLDER = Path(__file__).parent / "curves"


class Recorded:
    """A training of which the curves are known, to be looked at as it was at each step."""

    def __init__(self, name: str, experiment: Experiment, whole: Curves, failed: bool) -> None:
        self.name, self.experiment, self.whole = name, experiment, whole
        self.steps = [int(step) for step in whole.steps["step"]]
        self.last = self.steps[-1]
        step = self.last + 1
        values = {"loss": float("nan"), "step": step, "learning_rate": 10.0, "lower": 0.1}
        reason = TrainingDiverged(LOSS_DIVERGED, **values).sentence if failed else None
        self.end = Status("failed" if failed else "finished", reason=reason)

    def until(self, step: int) -> Curves:
        """What was written down up to a step."""
        curves = Curves()
        curves.started = self.whole.started
        curves.steps = self.whole.steps.up_to(step)
        curves.validation = self.whole.validation.up_to(step)
        curves.gradients = tuple(one for one in self.whole.gradients if one.step <= step)
        return curves


@cache
def recorded(kind: str) -> tuple[Recorded, ...]:
    """All trainings of a file, ``healthy`` or ``sick``."""
    lines = gzip.decompress((FOLDER / f"{kind}.jsonl.gz").read_bytes()).decode().splitlines()
    return tuple(_recorded(json.loads(line)) for line in lines)


def _recorded(told: dict[str, Any]) -> Recorded:
    curves = Curves()
    curves.extend(list(_events(told)))
    failed = told["failed"] is not None
    return Recorded(told["name"], from_query(told["experiment"]), curves, failed)


def _events(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield told["started"]
    gradients = {step: norms for step, norms in told["gradients"]}
    for step, loss, norm in zip(told["step"], told["loss"], told["grad_norm"], strict=True):
        event = {"event": "step", "step": step, "loss": loss, "grad_norm": norm}
        yield event | ({"gradients": gradients[step]} if step in gradients else {})
    for step, loss in told["measured"]:
        yield {"event": "measured", "split": "validation", "step": step, "loss": loss}
