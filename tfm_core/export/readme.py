"""README.txt of a zip: what each file is, and what to do with it."""

from __future__ import annotations

import textwrap

import tfm_core
from tfm_core.choices.config import ForeignModelConfig
from tfm_core.choices.variants.forms import family_label
from tfm_core.data.user_data.sets import added_of
from tfm_core.export import layout
from tfm_core.runs.figures import figures
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Say, Sentence, joined
from tfm_core.trace.source.carried import Carried, command

_WIDTH = 88


def readme_text(
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
        layout.EXPERIMENT: N_("all settings; the Train page opens this file"),
        layout.FACTS: N_("seed, device, versions and progress"),
        layout.METRICS: N_("loss, accuracy and more by step, for training, validation and test"),
        layout.WEIGHTS: N_("the averaged weights of the last checkpoint, named as in model.py")
        if training is not None and training.ema_decay
        else N_("the weights of the last checkpoint, named as in model.py"),
        layout.MODEL: N_("this model in one file that needs only PyTorch"),
        "run/": N_("events, examples, snapshots and optimiser, for the app to import"),
    }
    if not has_weights:
        del files[layout.WEIGHTS]
    if training is None:
        del files[layout.MODEL]
        files[layout.EXPERIMENT] = N_("facts about the model")
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
    is_ours, uses_set = experiment.training is not None, bool(added_of(experiment.task))
    notes = {
        N_(
            "Training again from experiment.json gives the same curve with the same versions and "
            "kind of processor; others round differently."
        ): is_ours,
        N_(
            "Settings changed during training: run/events.jsonl lists the changes, and "
            "experiment.json has the first values."
        ): bool(run.thinned_curves().turns),
        N_(
            "The model was trained in another program, which has its code and weights."
        ): not is_ours,
        N_(
            "No weights are included: the run had no checkpoint, or training diverged and left "
            "weights that are not finite."
        ): is_ours and not has_weights,
        N_(
            "{n} snapshots are left out to keep the zip small; the first and last are included.",
            n=n_left_out,
        ): n_left_out > 0,
        N_(
            "set/ contains all training data. Share this zip only with people who may see it."
        ): uses_set and has_set,
        N_(
            "The training data is not included, except for the examples in the snapshots. You can "
            "view and query the run, but not train it further."
        ): uses_set and not has_set,
        N_("experiment.json contains the training text."): bool(
            getattr(experiment.task, "text", "")
        ),
    }
    return [note for note, applies in notes.items() if applies]


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
            "Exported by version {version} of the app that trained it.",
            version=tfm_core.__version__,
        )
    )
    return joined(*parts)
