"""README.txt of a zip: what each file is, and what to do with it."""

from __future__ import annotations

import textwrap

import tfm_core
from tfm_core.config import ForeignModelConfig
from tfm_core.data.own.sets import added_of
from tfm_core.export import layout
from tfm_core.inspect.source.carried import Carried, command
from tfm_core.runs.record.figures import figures
from tfm_core.runs.run import Run

_WIDTH = 88


def of(run: Run, data: Carried | None, *, has_weights: bool, n_left_out: int, has_set: bool) -> str:
    """Return the text. n_left_out: how many snapshots and weights over training are not inside."""
    experiment = run.experiment
    weights = "averaged weights" if experiment.training.ema_decay else "weights"
    files = {
        layout.EXPERIMENT: "every setting; the Train page reads it",
        layout.FACTS: "seed, device, versions and progress",
        layout.METRICS: "loss, accuracy and more by step, for training, validation and test",
        layout.WEIGHTS: f"the {weights} of the last checkpoint, named as in model.py",
        layout.MODEL: "this model in one file that needs only PyTorch",
        layout.NOTEBOOK: "reads these files and asks the model; needs torch, safetensors, pandas, "
        "plotly",
        "figures/": "the curves as an offline page, the heads of the last layers as SVG",
        "run/": "what the app needs to import the run: events, examples, snapshots, optimiser",
    }
    if not has_weights:
        del files[layout.WEIGHTS]
    is_foreign = experiment.task.is_foreign
    if is_foreign:
        del files[layout.MODEL]
        files[layout.EXPERIMENT] = "what is known of the model"
        files[layout.NOTEBOOK] = "reads these files; needs torch, safetensors, pandas, plotly"
    width = max(map(len, files)) + 2
    lines = [run.meta.name, "=" * len(run.meta.name), ""]
    lines += textwrap.wrap(summary(run), _WIDTH)
    lines += [""]
    for name, words in files.items():
        lines += textwrap.wrap(f"{name:<{width}}{words}", _WIDTH, subsequent_indent=" " * width)
    lines += ["", "Next steps", "----------", ""]
    if has_weights and data is not None:
        lines += [command(data, layout.WEIGHTS)]
    lines += [
        f"jupyter lab {layout.NOTEBOOK}",
        "python -m tfm_core import THIS.zip      (or drop it on the app's Runs page)",
        "",
    ]
    for note in _notes(run, has_weights=has_weights, n_left_out=n_left_out, has_set=has_set):
        lines += [*textwrap.wrap(note, _WIDTH), ""]
    return "\n".join(lines)


def _notes(run: Run, *, has_weights: bool, n_left_out: int, has_set: bool) -> list[str]:
    experiment, is_foreign = run.experiment, run.experiment.task.is_foreign
    notes = []
    if not is_foreign:
        notes.append(
            "Trained again from experiment.json with the same versions and kind of processor, the "
            "run makes the same curve; other versions or devices round differently."
        )
    if run.thinned_curves().turns:
        notes.append(
            "Settings were changed while it trained: run/events.jsonl says which and when, and "
            "experiment.json has their first values."
        )
    if is_foreign:
        notes.append("The model was trained by another program, which has code and weights.")
    elif not has_weights:
        notes.append(
            "There are no weights here: the run had no checkpoint, or training diverged and its "
            "weights are not finite numbers."
        )
    if n_left_out:
        notes.append(
            f"{n_left_out} snapshots are left out to keep the zip small; the first and the last "
            "are here."
        )
    if added_of(experiment.task):
        notes.append(
            "set/ holds all the data that the model learned from: share this zip only with people "
            "who may see them."
            if has_set
            else "The data that the model learned from are not here, apart from the examples of "
            "its snapshots. Without the data the run can be viewed and asked, but not trained on."
        )
    if getattr(experiment.task, "text", ""):
        notes.append("experiment.json holds the text that the model learned from.")
    return notes


def summary(run: Run) -> str:
    """Return what a run is and what it reached, in plain English."""
    values, experiment = figures(run), run.experiment
    count = values["n_parameters"]
    if isinstance(experiment.model, ForeignModelConfig):
        model, seed = f"{experiment.task.facts.label} {experiment.model.class_name}", ""
    else:
        model = f"{experiment.task.facts.label}, learned by a model of the family "
        model += experiment.model.family
        seed = f", seed {experiment.seed}"
    words = [
        model
        + (f" with {count:,} parameters" if count else "")
        + f"{seed}: {values['step']:,} of {values['total_steps']:,} steps in "
        f"{values['seconds']:.0f} s on {run.status.device}."
    ]
    for split in ("validation", "test"):
        if split in values:
            loss, accuracy = values[split]["loss"], values[split]["accuracy"]
            if loss is not None and accuracy is not None:
                words.append(f"Last {split}: loss {loss:.4f}, accuracy {accuracy:.1%}.")
    words.append(f"Taken from version {tfm_core.__version__} of the app that trained it.")
    return " ".join(words)
