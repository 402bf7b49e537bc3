"""File names in the zip of a run, and the names of its weights.

At the top is what a person wants: experiment, metrics, weights, the model.
Below ``run/`` is what the app needs to take the run in again as it was.
"""

from __future__ import annotations

from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import Names, own_name, own_names

FORMAT = 1
"""Raised when an older app could no longer read a zip."""

README = "README.txt"
EXPERIMENT = "experiment.json"
FACTS = "run.json"
METRICS = "metrics.csv"
WEIGHTS = "weights.safetensors"
MODEL = "model.py"
EVENTS = "run/events.jsonl"
PROBE, PICTURES = "run/probe.json", "run/probe.safetensors"
BEST, BEST_WEIGHTS = "run/best.json", "run/best.safetensors"
OPTIMISER = "run/optimiser.safetensors"
TRAINED_WEIGHTS = "run/trained.safetensors"
"""The weights that are trained on, where those above are their average."""
SET = "set/"
"""The custom set that the run learned from, where it is included."""
SNAPSHOTS, KEPT_WEIGHTS = "run/snapshots/", "run/weights/"
VOCABULARY = "run/vocabulary/"
"""How texts of that set are cut, and its vocabularies, where the set itself stays behind."""


def weight_names(experiment: Experiment, names: list[str]) -> dict[str, str]:
    """Return the name of each weight of the engine -> its name in the model file.

    Two names of one table have one name there.
    """
    own = own_names(experiment.model, data_shape(experiment))
    return {name: _in_file(name, own) for name in names}


def _in_file(name: str, own: Names) -> str:
    name_in_file = own_name(name, own)
    if name_in_file is not None:
        return name_in_file
    second = next(old for old in own if name.startswith(f"{old}."))
    return next(new for new in own.values() if new) + name.removeprefix(second)
