"""Where a run stands, in numbers: progress, accuracy, speed, time left, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import streamlit as st

from pages.i18n import _
from pages.ui import run_words, runs_access, show, visitors
from pages.ui.typed import escape
from tfm_core.facts.batches import Batches
from tfm_core.runs import settings
from tfm_core.runs.backends import job
from tfm_core.runs.curves import Curves, Series
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status

_RECENT = 30  # steps over which speed is averaged


def line(run: Run, status: Status, said: str, well: str = "") -> None:
    """Say in one line how far it is, what its state means, how fast it is and what it learns.

    well: what is said where nothing is wrong.
    """
    curves = runs_access.curves(run)
    words = [_progress_words(curves, status)]
    if said:
        words.append(said)
    elif status.state != "starting":
        words += [f"{label}: {value}" for label, value, _help in _pace_cards(run, status, curves)]
    with st.container(key="live-line"):
        st.caption(" · ".join(filter(None, [*words, run_words.learns(run), well])))


def part(run: Run, status: Status) -> None:
    """Draw the key figures as cards, and the rest as lines."""
    curves = runs_access.curves(run)
    st.caption(" · ".join(_small(run, curves, status)))
    for remark in _remarks(run, curves):
        st.caption(f":orange[:material/warning: {escape(remark)}]")
    if status.state == "paused" and not visitors.watches(run):
        st.caption(_paused())
    with st.container(horizontal=True, gap="small"):
        for label, value, help_text in _cards(run, status, curves):
            st.metric(label, value, help=help_text, border=True, width=168)
    if _is_tested(curves):
        st.caption(_tested_words(run, curves))


def _paused() -> str:
    """Say how long a pause may last."""
    longest = settings.read().max_pause
    if longest == 0:
        return _("It stops when other runs are waiting; Resume then continues from here.")
    return _(
        "After {time} of pause it stops when other runs are waiting; Resume then continues from "
        "here.",
        time=show.duration(longest),
    )


def _remarks(run: Run, curves: Curves) -> list[str]:
    """Return what a person should know of the data of a run."""
    started, experiment = curves.started, run.experiment
    said = [str(started["remark"])] if started.get("remark") else []
    if curves.compiled.get("reason"):
        said.append(str(curves.compiled["reason"]))
    is_old = bool(started) and "remark" not in started  # written by release 0.1
    if is_old and experiment.seed and experiment.task.name in ("mnist-5000", "captions"):
        said.append(
            _(
                "This run is older than the test digits that are the same for every seed: what is "
                "shown of unseen digits from now on may hold some that it has learned."
            )
        )
    return said


def speed(curves: Curves) -> float | None:
    """Return examples per second, the mean of the newest steps, or None before the first."""
    recent = curves.steps["examples_per_second"][-_RECENT:]
    return float(np.nanmean(recent)) if np.isfinite(recent).any() else None


def seconds_left(run: Run, status: Status, curves: Curves) -> float | None:
    """Return how long the rest of the steps will take at the newest speed, or None."""
    pace = speed(curves)
    if not pace or not status.is_alive:
        return None
    examples = Batches.of_experiment(run.experiment).examples
    return max(0, examples(status.total_steps) - examples(status.step)) / pace


def _progress_words(curves: Curves, status: Status) -> str:
    epoch = curves.steps.last("epoch")
    words = _(
        "Step {step} of {total}",
        step=f"{int(curves.steps.last('step') or status.step):,}",  # as the stage counts
        total=f"{status.total_steps:,}",
    )
    if epoch is None:
        return words
    reads = curves.started.get("reads_per_epoch", 1.0)
    if reads > 1:  # every window once is far more than every token once
        times = show.count(epoch * reads) if epoch * reads >= 10 else f"{epoch * reads:.1f}"
        return _(
            "{words} · each token is read {times} times, in overlapping windows",
            words=words,
            times=times,
        )
    return _("{words} · epoch {n}", words=words, n=f"{epoch:.1f}")


def _cards(run: Run, status: Status, curves: Curves) -> list[tuple[str, str, str]]:
    """Return label, value and help of each card; a value not known yet is a dash."""
    answer = run.experiment.task.facts.answer
    is_over, has_wholes = _is_tested(curves), answer in ("sequence", "blanks")
    is_corpus = answer == "text"
    measured = curves.test if is_over else curves.unseen
    where = _("newest measurement on validation")
    if is_over:
        where = _("measured on the test set")
    elif measured is curves.averaged:
        where = _("latest validation of the averaged weights")
    cards = [
        (
            _("Test accuracy") if is_over else _("Accuracy"),
            _last(measured, "accuracy", show.percent),
            _(
                "Share of unseen pictures or target tokens that are right; {where}. {unseen}",
                where=where,
                unseen=_(run.experiment.task.facts.unseen),
            ),
        )
    ]
    if has_wholes:
        cards.append(
            (
                _("Test, whole sequences") if is_over else _("Whole sequences"),
                _last(measured, "sequence_accuracy", show.percent),
                _("Share of unseen examples with every token right."),
            )
        )
    if is_corpus:
        cards.append(
            (
                _("Perplexity"),
                _last(measured, "loss", lambda value: f"{math.exp(min(value, 99)):.2f}"),
                _("exp(loss): as unsure as guessing between this many equally likely tokens."),
            )
        )
    cards.append(
        (
            _("Test loss") if is_over else _("Loss"),
            _last(measured, "loss", lambda value: f"{value:.3f}"),
            _("Mean cross-entropy on unseen examples, in nats; {where}.", where=where),
        )
    )
    return [*cards, *_pace_cards(run, status, curves)]


def _pace_cards(run: Run, status: Status, curves: Curves) -> list[tuple[str, str, str]]:
    """Return the cards that tell of time: speed, and what is left or was spent."""
    kind = run.experiment.task.kind
    pace, left = speed(curves), seconds_left(run, status, curves)
    cards = [
        (
            {"text": _("Pairs/s"), "corpus": _("Texts/s"), "own": _("Texts/s")}.get(
                kind, _("Pictures/s")
            ),
            "–" if pace is None else show.count(pace),
            _("Training examples per second, mean of the latest steps."),
        )
    ]
    if status.is_active:
        words = "–" if left is None else show.duration(left)
        cards.append((_("Time left"), words, _("At the current speed, without validation.")))
    else:
        trained = show.duration(status.seconds)
        cards.append((_("Trained for"), trained, _("Seconds of training, without pauses.")))
    return cards


def _is_tested(curves: Curves) -> bool:
    """Say whether the newest measurement is the test: not so in a copy that trains further."""
    return bool(curves.finished) and len(curves.test) > 0


def _tested_words(run: Run, curves: Curves) -> str:
    """Say which weights the test figures are of, and by which rule."""
    step = f"{int(curves.test.last('step') or 0):,}"
    training = run.experiment.training
    if training.tested == "average":
        if training.keeps_best:
            return _(
                "Tested: the averaged weights of step {step}, the best by validation. Pages "
                "show these, too.",
                step=step,
            )
        return _(
            "Tested: the averaged weights (decay {decay}) of step {step}. Pages show these, too.",
            step=step,
            decay=f"{training.ema_decay:g}",
        )
    if curves.tested(training.tested) == "best":
        return _(
            "Tested: the weights of step {step}, the best by validation (patience is on).",
            step=step,
        )
    if training.tested == "best":
        return _("Tested: the last weights, of step {step}.", step=step)
    return _(
        "Tested: the last weights, of step {step}. With patience it would be the best by "
        "validation.",
        step=step,
    )


def _last(series: Series, column: str, words: Callable[[float], str]) -> str:
    value = series.last(column)
    return "–" if value is None else words(value)


def _small(run: Run, curves: Curves, status: Status) -> list[str]:
    newest = curves.steps.last
    parts = [_("Device {name}", name=show.device(status.device))]
    if run.meta.threads > 1:
        parts[0] += _(", {n} threads", n=run.meta.threads)
    if run.meta.begun_on is not None:
        parts[0] += _(", begun on {name}", name=show.device(run.meta.begun_on))
    by = job.trained_by(run.folder, status)
    if by is not None and not settings.read().public:  # names of machines are for nobody else
        parts.append(escape(_(by)))
    if curves.started.get("n_parameters"):
        n = show.count(curves.started["n_parameters"])
        parts.append(_("{n} parameters", n=n))
    rate, norm, memory = newest("learning_rate"), newest("grad_norm"), newest("memory_bytes")
    if curves.compiled.get("seconds") is not None:
        parts.append(_("compiled in {x}", x=show.duration(curves.compiled["seconds"])))
    if rate is not None:
        parts.append(_("learning rate {x}", x=f"{rate:.2g}"))
    if norm is not None:
        parts.append(_("gradient norm {x}", x=f"{norm:.2f}"))
    if memory:
        parts.append(_("memory {x}", x=show.size(memory)))
    return parts
