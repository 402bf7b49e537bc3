"""A run in numbers: progress, accuracy, speed, time left and cost."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.runs import run_words, runs_access
from pages.app.typed import escape
from pages.i18n import _
from tfm_core import settings
from tfm_core.choices.config import TrainingConfig
from tfm_core.facts.batches import Batches
from tfm_core.runs.curves import Curves, Series
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.sentences import loss_words

_RECENT = 30  # steps over which speed is averaged


def line(run: Run, status: Status, state_text: str) -> None:
    """Summarise progress, state and speed in one line."""
    curves = runs_access.curves(run)
    parts = [_progress(curves), state_text]
    if status.state != "starting":
        parts += _pace(run, status, curves)
    with st.container(key="live-line"):
        st.caption(" · ".join(filter(None, [*parts, escape(run_words.learns(run))])))


def part(run: Run, status: Status) -> None:
    curves = runs_access.curves(run)
    st.caption(" · ".join(_small(run, curves, status)))
    started = curves.started
    notices = [str(started["remark"])] if started.get("remark") else []
    if curves.compiled.get("reason"):
        notices.append(str(curves.compiled["reason"]))
    for notice in notices:
        st.caption(f":orange[:material/warning: {escape(notice)}]")
    if status.state == "paused" and not visitors.watches(run):
        time = show.duration(settings.read().limits.max_pause)
        st.caption(_("After {time} it stops if other runs wait; you can resume it.", time=time))
    with st.container(horizontal=True, gap="small"):
        for label, value, help_text in _cards(run, curves):
            st.metric(label, value, help=help_text, border=True, width=168)
    if _is_tested(curves) and run.experiment.training is not None:
        st.caption(_tested(run.experiment.training, curves))


def speed(curves: Curves) -> float | None:
    """Return examples per second, averaged over the latest steps; None before the first."""
    recent = curves.steps["examples_per_second"][-_RECENT:]
    return float(np.nanmean(recent)) if np.isfinite(recent).any() else None


def seconds_left(run: Run, status: Status, curves: Curves) -> float | None:
    pace = speed(curves)
    if not pace or not status.is_alive:
        return None
    examples = Batches.of_experiment(run.experiment).examples
    return max(0, examples(status.total_steps) - examples(status.step)) / pace


def _progress(curves: Curves) -> str:
    """Return how often the training data was read; the stage has the step."""
    epoch = curves.steps.last("epoch")
    if epoch is None:
        return ""
    reads = curves.started.get("reads_per_epoch", 1.0)
    if reads > 1:  # windows overlap, so tokens are read more than once
        times = show.count(epoch * reads) if epoch * reads >= 10 else f"{epoch * reads:.1f}"
        return _("Each token read {times} times", times=times)
    return _("Epoch {n}", n=f"{epoch:.1f}")


def _cards(run: Run, curves: Curves) -> list[tuple[str, str, str]]:
    answer, is_over = run.experiment.task.facts.answer, _is_tested(curves)
    measured = curves.test if is_over else curves.unseen
    source = "" if is_over else _("Latest validation.")
    if measured is curves.averaged:
        source = _("Latest validation of the averaged weights.")
    right = _("Share of unseen pictures or tokens that are right.")
    cards = [
        (
            _("Test accuracy") if is_over else _("Accuracy"),
            _last(measured, "accuracy", show.percent),
            f"{right} {source} {_(run.experiment.task.facts.unseen)}",
        )
    ]
    if answer in ("sequence", "blanks"):
        cards.append(
            (
                _("Test, whole sequences") if is_over else _("Whole sequences"),
                _last(measured, "sequence_accuracy", show.percent),
                _("Unseen examples with every token right."),
            )
        )
    if answer == "text":
        cards.append(
            (
                _("Perplexity"),
                _last(measured, "loss", lambda value: f"{math.exp(min(value, 99)):.2f}"),
                _("exp(loss): as unsure as a guess among this many tokens."),
            )
        )
    cards.append(
        (
            _("Test loss") if is_over else _("Loss"),
            _last(measured, "loss", loss_words),
            f"{_('Cross-entropy on unseen examples, in nats.')} {source}",
        )
    )
    return cards


def _pace(run: Run, status: Status, curves: Curves) -> list[str]:
    """Return the speed, and the time left or taken."""
    task = run.experiment.task
    left: float | None = None
    if run.experiment.training is None:  # a step of the user's own loop has no known examples
        steps, seconds = (curves.steps[name][-_RECENT:] for name in ("step", "seconds"))
        took = float(seconds[-1] - seconds[0]) if len(seconds) > 1 else 0.0
        label, pace = _("Steps/s"), float(steps[-1] - steps[0]) / took if took > 0 else None
        value = "" if pace is None else f"{pace:.3g}"
        if pace and (total := curves.started.get("total_steps")):
            left = max(0.0, (total - status.step) / pace)
    else:
        label = _("Texts/s") if task.picture_shape is None else _("Pictures/s")
        if task.kind == "text":
            label = _("Pairs/s")
        pace, left = speed(curves), seconds_left(run, status, curves)
        value = "" if pace is None else show.count(pace)
    time = (_("Time left"), "" if left is None else show.duration(left))
    if not status.is_active:
        time = (_("Trained for"), show.duration(status.seconds))
    return [f"{label}: {value or '–'}" for label, value in ((label, value), time)]


def _is_tested(curves: Curves) -> bool:
    """Return whether the test set was measured last; false in a copy that trains further."""
    return bool(curves.finished) and len(curves.test) > 0


def _tested(training: TrainingConfig, curves: Curves) -> str:
    step = f"{int(curves.test.last('step') or 0):,}"
    if training.tested == "average":
        if training.keeps_best:
            return _(
                "Test figures and pages use the averaged weights, best by validation "
                "(step {step}).",
                step=step,
            )
        return _(
            "Test figures and pages use the averaged weights (decay {decay}) of step {step}.",
            step=step,
            decay=f"{training.ema_decay:g}",
        )
    if curves.tested(training.tested) == "best":
        return _("Test figures use the best weights by validation (step {step}).", step=step)
    if training.tested == "best":
        return _("Test figures use the final weights (step {step}).", step=step)
    return _(
        "Test figures use the final weights (step {step}), or with patience the best by "
        "validation.",
        step=step,
    )


def _last(series: Series, column: str, form: Callable[[float], str]) -> str:
    value = series.last(column)
    return "–" if value is None else form(value)


def _small(run: Run, curves: Curves, status: Status) -> list[str]:
    newest = curves.steps.last
    parts = [_("Device {name}", name=show.device(status.device))]
    if run.meta.threads > 1:
        parts.append(_("{n} threads", n=run.meta.threads))
    if run.meta.begun_on is not None:
        parts.append(_("begun on {name}", name=show.device(run.meta.begun_on)))
    if curves.started.get("n_parameters"):
        n = show.count(curves.started["n_parameters"])
        parts.append(_("{n} parameters", n=n))
    rate, norm, memory = newest("learning_rate"), newest("grad_norm"), newest("memory_bytes")
    balance = newest("balance")
    if curves.compiled.get("seconds") is not None:
        parts.append(_("compiled in {x}", x=show.duration(curves.compiled["seconds"])))
    if rate is not None:
        parts.append(_("learning rate {x}", x=f"{rate:.2g}"))
    if norm is not None:
        parts.append(_("gradient norm {x}", x=f"{norm:.2f}"))
    if balance is not None:
        parts.append(_("imbalance of experts {x}", x=f"{balance:.2f}"))
    if memory:
        parts.append(_("memory {x}", x=show.size(memory)))
    return parts
