"""The symptoms of a run as it is now, the gravest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tfm_core.choices.config import Experiment
from tfm_core.facts.learning_rate import usual_rate
from tfm_core.inspect.symptoms import in_curves
from tfm_core.inspect.symptoms.cures import Checkpoints, Symptom, SymptomKind, cures
from tfm_core.inspect.symptoms.in_heads import dead_modules
from tfm_core.probe.labels import kind_of, layer_of
from tfm_core.runs.curves import Curves
from tfm_core.runs.record.outcome import LossProgress, OutcomeKind, loss_progress, outcome_of
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.sentences import N_, Paragraph, Sentence, joined, listed
from tfm_core.training.progress import is_of_divergence

DeadHeads = tuple[int, tuple[str, ...]]
"""Since which step, and which modules; see ``in_heads.dead_modules``."""


def symptoms(
    experiment: Experiment,
    status: Status,
    curves: Curves,
    kept: Checkpoints,
    dead: DeadHeads | None = None,
) -> tuple[Symptom, ...] | None:
    """Return what is wrong with a training so far; None if it is too early to judge."""
    way = loss_progress(curves)
    if way is None:
        return None
    found = tuple(_seen(experiment, status, curves, way, dead))
    if not found and (outcome := outcome_of(status, curves)) is not None:
        since = int(way.steps[-1]) if len(way.steps) else 0
        found = ((_OF_OUTCOME[outcome.kind], since, outcome.sentence),)
    return tuple(
        Symptom(
            kind,
            step,
            sentence,
            () if experiment.training is None else cures(kind, experiment, step, kept),
        )
        for kind, step, sentence in found
    )


def waits_until(experiment: Experiment) -> int:
    """Return the step from which a training should be better than guessing."""
    training = experiment.training
    return in_curves.wait(0 if training is None else round(training.warmup * training.steps))


FoundSymptom = tuple[SymptomKind, int, str]
_OF_OUTCOME: dict[OutcomeKind, SymptomKind] = {
    "diverged": "diverged",
    "never-learned": "at-chance",
    "by-heart": "overfits",
}


def _seen(
    experiment: Experiment,
    status: Status,
    curves: Curves,
    way: LossProgress,
    dead: DeadHeads | None,
) -> Iterator[FoundSymptom]:
    values: dict[str, Any]
    diverged = _diverged(status, curves, way)
    if diverged is not None:
        yield diverged
        return
    step = int(way.steps[-1]) if len(way.steps) else 0
    is_over = status.state == "finished"
    is_late = step >= waits_until(experiment) or is_over
    at_chance = is_late and in_curves.is_at_chance(way, curves)
    rated = None if experiment.training is None else _of_rate(experiment, way, step)
    if is_late and rated is not None:
        yield rated
    elif at_chance:
        loss = float(way.running[-1]) if len(way.running) else way.guessing
        values = {"step": step, "loss": loss, "guessing": way.guessing}
        yield "at-chance", 0, Paragraph("symptoms/at-chance", **values)
    if (long := in_curves.exploding(curves)) is not None:
        yield "exploding", long.step, _exploding(long)
    if (faint := in_curves.vanishing(curves)) is not None:
        step, parts, share, longest = faint
        values = {"parts": listed(map(_part, parts)), "longest": _part(longest)}
        values |= {"step": step, "share": share}
        yield "vanishing", step, Paragraph("symptoms/vanishing", **values)
    if dead is not None and is_late and not at_chance:
        yield "dead-heads", dead[0], _dead(experiment, dead[1])
    if (rise := in_curves.overfit(way, curves)) is not None:
        yield "overfits", rise["step"], Paragraph("symptoms/overfits", **rise)


def _diverged(status: Status, curves: Curves, way: LossProgress) -> FoundSymptom | None:
    if status.state == "failed" and is_of_divergence(status.reason):
        assert isinstance(status.reason, Sentence)
        step, loss = int(status.reason.values["step"]), status.reason.values["loss"]
        return "diverged", step, Paragraph("symptoms/not-a-number", step=step, loss=loss)
    since = in_curves.diverged_at(way)
    if since is None:
        return None
    words = Paragraph(
        "symptoms/diverged",
        step=since,
        loss=float(way.running[-1]),
        lowest=float(way.running.min()),
        guessing=way.guessing,
    )
    return "diverged", since, words


def _of_rate(experiment: Experiment, way: LossProgress, step: int) -> FoundSymptom | None:
    """Return the symptom of a learning rate far from the usual one."""
    rate, usual = experiment.trained.learning_rate, usual_rate(experiment)
    share, fall = float(way.shares[-1]) if len(way.shares) else 0.0, in_curves.fall_per_100(way)
    values = {"share": f"{max(0, int(100 * share + 1e-6))}%", "rate": rate, "usual": usual}
    if rate <= usual / in_curves.TIMES and share < in_curves.HALF:
        return "slow", step, Paragraph("symptoms/slow", fall=max(0.0, fall), **values)
    is_still = fall < in_curves.STILL * way.length
    if rate >= usual * in_curves.TIMES and share < in_curves.MAX and is_still:
        return "stuck", step, Paragraph("symptoms/stuck", loss=float(way.running[-1]), **values)
    return None


def _exploding(long: in_curves.Long) -> Sentence:
    words = Paragraph("symptoms/exploding", step=long.step, length=long.length)
    if long.part is None:
        return words
    part = N_("{part} has the largest, {own:,.0f}.", part=_part(long.part), own=long.part_length)
    return joined(words, part)


def _dead(experiment: Experiment, modules: Sequence[str]) -> Sentence:
    named = [
        N_(
            "{kind}, layer {layer}",
            kind=kind_of(experiment, module).label,
            layer=layer_of(module) + 1,
        )
        for module in modules
    ]
    return Paragraph("symptoms/dead-heads", modules=listed(named))


def _part(name: str) -> str:
    """Return a part of a model in words: ``decoder.layers.0`` is decoder layer 1."""
    stack, _dot, layer = name.partition(".layers.")
    if layer.isdecimal():
        return N_("{stack} layer {n}", stack=stack, n=int(layer) + 1)
    return name.replace("_", " ").replace(".", " ")


def of_run(run: Run, curves: Curves, steps: Sequence[int]) -> tuple[Symptom, ...] | None:
    """Return what is wrong with a run now, see ``symptoms``. steps: of its snapshots."""
    experiment, status = run.experiment, run.status
    since = waits_until(experiment)
    dead = dead_modules(run, [step for step in steps if step >= since])
    kept: Checkpoints = {
        "best": run.step_of_checkpoint("best"),
        "last": run.step_of_checkpoint("last"),
    }
    return symptoms(experiment, status, curves, kept, dead)
