"""Races: every kind of positions on one task, and attention in an RNN against a Transformer's."""

from __future__ import annotations

from typing import Any

from tfm_core.choices.config import Experiment, TextModelConfig
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.experiment import sequence_len
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.positions import POSITIONS, POSITIONS_OF_WORDS
from tfm_core.inspect.attention.alignment import RNN_HEADS, rnn_models
from tfm_core.sentences import N_, StudentError
from tfm_core.studies.study import Arm, Study

_STEPS = 600
"""Of the recorded races."""


def of_positions(experiment: Experiment, *, steps: int) -> Study:
    """Return a race of the kinds of positions that the family of an experiment offers.

    The learned table gets twice the rows that the task needs, so that it can be asked beyond the
    trained length. Raises ConfigError where a kind does not fit the model, ValueError where the
    model has no positions or is not trained.
    """
    model = experiment.model
    if not model.has_blocks:
        raise StudentError("An RNN has no positions. Choose a Transformer on the Train page.")
    values: dict[str, Any] = experiment.model_dump()
    values["training"] = experiment.trained.replace(steps=steps).model_dump()
    if isinstance(model, TextModelConfig):
        max_len = max(model.max_len, 2 * sequence_len(experiment) + 2)
        values["model"]["max_len"] = min(8192, max_len)
    offered = type(model).offered("position")
    race = Study(
        name="positions",
        title=N_("{task}, positions", task=experiment.task.facts.label),
        base=Experiment.parse(values),
        arms=tuple(
            Arm(kind, POSITIONS[kind].label, {"model.position": kind})
            for kind in POSITIONS_OF_WORDS
            if kind in offered
        ),
    )
    assert race.experiments  # raises where a kind does not fit
    return race


def of_attention(task: str, *, steps: int = _STEPS) -> Study:
    """Return a race of an RNN with additive attention and Transformers on a text task."""
    labels = {
        "additive": N_("RNN, additive attention (2015)"),
        "one-head": N_("Transformer, one head (2017)"),
        "many-heads": N_("Transformer, {n} heads (2017)", n=RNN_HEADS),
    }
    racers = rnn_models()
    values = default_sections("encoder-decoder", task)
    values["model"] = racers["many-heads"].model_dump()
    values["training"]["steps"] = steps
    facts = Experiment.parse(values)
    return Study(
        name="attention",
        title=facts.task.facts.label,
        base=facts,
        arms=tuple(Arm(name, labels[name], {"model": racers[name]}) for name in labels),
    )


COPY = of_positions(PRESETS["copy"].experiment, steps=_STEPS)
TRANSLATION = of_attention("english-korean")
"""These come with the app."""
