"""The weights of a run, module by module, as its seed made them and as training left them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.data.shape import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.runs.run import Run
from tfm_core.sentences import N_

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """One parameter's weights: edges (bins + 1,), and the share in each bin before and after."""

    name: str
    edges: Floats
    before: Floats
    after: Floats
    spread: tuple[float, float]

    @property
    def words(self) -> str:
        """How much the spread changed."""
        old, new = self.spread
        return N_("The standard deviation went from {old:.4f} to {new:.4f}.", old=old, new=new)


def has_weights(run: Run) -> bool:
    """Return whether a run left a checkpoint."""
    return run.has_checkpoint


def weight_histograms(run: Run, bins: int = 61) -> dict[str, Histogram]:
    """Return the histogram of every parameter, by its name in the model's family.

    Raises CheckpointDamaged (a ValueError).
    """
    from tfm_core.training.checkpoints import load_model
    from tfm_core.training.models import new_model

    trained, _step = load_model(run.experiment, run.folder / "checkpoints" / "last")
    before = dict(new_model(run.experiment).named_parameters())
    names = own_names(run.experiment.model, data_shape(run.experiment))
    histograms = {}
    for path, value in trained.named_parameters():
        name = own_name(path, names) or path
        old, new = before[path].detach().numpy(), value.detach().numpy()
        histograms[name] = _histogram(name, old, new, bins)
    return histograms


def _histogram(name: str, before: Floats, after: Floats, bins: int) -> Histogram:
    top = max(float(np.abs(before).max()), float(np.abs(after).max()), 1e-6)
    edges = np.linspace(-top, top, bins + 1)
    old, new = (np.histogram(values, edges)[0] / values.size for values in (before, after))
    return Histogram(name, edges, old, new, (float(before.std()), float(after.std())))
