"""The final figures of a run, as plain values and as text."""

from __future__ import annotations

from typing import Any

from tfm_core.runs.run import Run


def figures(run: Run) -> dict[str, Any]:
    """Return how a run ended: state, steps, seconds, and the last measurement of each split.

    tested: which weights the figures of the test are of, "best" or "last"; None before it.
    """
    status, curves = run.status, run.curves()
    measured = {
        split: {
            name: series.last(name) for name in ("step", "loss", "accuracy", "sequence_accuracy")
        }
        for split, series in (("validation", curves.validation), ("test", curves.test))
        if len(series)
    }
    return {
        "id": run.id,
        "folder": str(run.folder),
        "name": run.meta.name,
        "state": status.state,
        "reason": status.reason,
        "step": status.step,
        "total_steps": status.total_steps,
        "seconds": status.seconds,
        "n_parameters": curves.started.get("n_parameters"),
        "train_loss": curves.steps.last("loss"),
        **measured,
        "tested": curves.tested(run.experiment.training.tested),
    }


def summary(values: dict[str, Any]) -> str:
    """Return ``figures`` as lines for a person."""
    lines = []
    for split in ("validation", "test"):
        if split in values:
            part = values[split]
            whole = part["sequence_accuracy"]
            more = "" if whole is None else f", whole sequences {whole:.1%}"
            of = _weights_words(values) if split == "test" else ""
            figures = f"loss {part['loss']:.4f}, accuracy {part['accuracy']:.1%}{more}"
            lines.append(f"{split}{of}: {figures}")
    lines.append(f"{values['step']:,} steps in {values['seconds']:.1f} s, run {values['id']}")
    return "\n".join(lines)


def _weights_words(values: dict[str, Any]) -> str:
    """Return which weights were tested."""
    of = f" of the weights of step {int(values['test']['step']):,}"
    return f"{of}, best by validation" if values["tested"] == "best" else of
