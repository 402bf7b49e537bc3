"""README.txt of a zip: what each file is, and what to do with it."""

from __future__ import annotations

import textwrap

import tfm_core
from tfm_core.choices.config import ForeignModelConfig
from tfm_core.choices.variants.forms import family_label
from tfm_core.data.own.sets import added_of
from tfm_core.export import layout
from tfm_core.runs.figures import figures
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Say, Sentence, joined
from tfm_core.trace.source.carried import Carried, command

_WIDTH = 88


def of(
    run: Run,
    data: Carried | None,
    *,
    has_weights: bool,
    n_left_out: int,
    has_set: bool,
    say: Say = str,
) -> str:
    """Return the text. n_left_out: how many snapshots and weights over training are not inside.

    say: translates its sentences.
    """
    training = run.experiment.training
    files = {
        layout.EXPERIMENT: N_("every setting; the Train page reads it"),
        layout.FACTS: N_("seed, device, versions and progress"),
        layout.METRICS: N_("loss, accuracy and more by step, for training, validation and test"),
        layout.WEIGHTS: N_("the averaged weights of the last checkpoint, named as in model.py")
        if training is not None and training.ema_decay
        else N_("the weights of the last checkpoint, named as in model.py"),
        layout.MODEL: N_("this model in one file that needs only PyTorch"),
        "run/": N_("what the app imports: events, examples, snapshots, optimiser"),
    }
    if not has_weights:
        del files[layout.WEIGHTS]
    if training is None:
        del files[layout.MODEL]
        files[layout.EXPERIMENT] = N_("what is known of the model")
    width = max(map(len, files)) + 2
    name = say(run.meta.name) if isinstance(run.meta.name, Sentence) else run.meta.name
    lines = [name, "=" * len(name), "", *textwrap.wrap(say(summary(run)), _WIDTH)]
    lines += [""]
    for file, words in files.items():
        lines += textwrap.wrap(
            f"{file:<{width}}{say(words)}", _WIDTH, subsequent_indent=" " * width
        )
    next_steps = say(N_("Next steps"))
    lines += ["", next_steps, "-" * len(next_steps), ""]
    if has_weights and data is not None:
        lines += [command(data, layout.WEIGHTS)]
    here = say(N_("or drop it on the app's Runs page"))
    lines += [f"python -m tfm_core import THIS.zip      ({here})", ""]
    for note in _notes(run, has_weights=has_weights, n_left_out=n_left_out, has_set=has_set):
        lines += [*textwrap.wrap(say(note), _WIDTH), ""]
    return "\n".join(lines)


def _notes(run: Run, *, has_weights: bool, n_left_out: int, has_set: bool) -> list[str]:
    experiment = run.experiment
    notes = list[str]()
    if experiment.training is not None:
        notes.append(
            N_(
                "Trained again from experiment.json with the same versions and kind of processor, "
                "the run makes the same curve; other versions or devices round differently."
            )
        )
    if run.thinned_curves().turns:
        notes.append(
            N_(
                "Settings were changed while it trained: run/events.jsonl says which and when, and "
                "experiment.json has their first values."
            )
        )
    if experiment.training is None:
        notes.append(N_("The model was trained by another program, which has code and weights."))
    elif not has_weights:
        notes.append(
            N_(
                "There are no weights here: the run had no checkpoint, or training diverged and "
                "its weights are not finite numbers."
            )
        )
    if n_left_out:
        notes.append(
            N_(
                "{n} snapshots are left out to keep the zip small; the first and the last are "
                "here.",
                n=n_left_out,
            )
        )
    if added_of(experiment.task):
        notes.append(
            N_(
                "set/ holds all the data that the model learned from: share this zip only with "
                "people who may see them."
            )
            if has_set
            else N_(
                "The data that the model learned from are not here, apart from the examples of its "
                "snapshots. Without the data the run can be viewed and asked, but not trained on."
            )
        )
    if getattr(experiment.task, "text", ""):
        notes.append(N_("experiment.json holds the text that the model learned from."))
    return notes


def summary(run: Run) -> str:
    """Return what a run is and what it reached."""
    values, experiment = figures(run), run.experiment
    count = values["n_parameters"]
    task = experiment.task.facts.label
    if isinstance(experiment.model, ForeignModelConfig):
        parts = [N_("{task}: {name}.", task=task, name=experiment.model.class_name)]
    else:
        parts = [
            N_(
                "{task}: {family}, seed {seed}.",
                task=task,
                family=family_label(experiment.model.family),
                seed=experiment.seed,
            )
        ]
    if count:
        parts.append(N_("Parameters: {n:,}.", n=count))
    parts.append(
        N_(
            "{step:,} of {total:,} steps in {seconds:.0f} s on {device}.",
            step=values["step"],
            total=values["total_steps"],
            seconds=values["seconds"],
            device=run.status.device,
        )
    )
    for split, title in (("validation", N_("Last validation")), ("test", N_("Last test"))):
        found = values.get(split, {})
        loss, accuracy = found.get("loss"), found.get("accuracy")
        if loss is not None and accuracy is not None:
            parts.append(
                N_(
                    "{split}: loss {loss:.4f}, accuracy {accuracy:.1%}.",
                    split=title,
                    loss=loss,
                    accuracy=accuracy,
                )
            )
    parts.append(
        N_(
            "Taken from version {version} of the app that trained it.",
            version=tfm_core.__version__,
        )
    )
    return joined(*parts)
