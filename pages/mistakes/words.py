"""What the page says of all answers together."""

from __future__ import annotations

from pages.i18n import _, ngettext
from pages.ui import runs_access, show, shown_run
from pages.ui.typed import escape
from tfm_core.inspect.compare.conclusions import wilson
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.examples import n_alike
from tfm_core.inspect.errors.groups import of_examples
from tfm_core.runs.run import Run


def summary(run: Run, found: Answers) -> str:
    """Say how many answers are right, of how many, and of which data."""
    said = _language(found) if found.is_language else _counted(found)
    said = f"{shown_run.origin_badge(run)} {escape(run.meta.name)}: {said} {_split(found)}".strip()
    alike = n_alike(run, found)
    if not alike:
        return said
    words = ngettext(
        "{n} of these texts looks like one in training, in which other words are hidden.",
        "{n} of these texts look like one in training, in which other words are hidden.",
        alike,
    )
    return f"{said} {words.format(n=f'{alike:,}')}"


def measured_then(run: Run, step: int) -> str:
    """Return what was measured on the validation set while the run trained, at or before a step."""
    curve = runs_access.curves(run).validation
    known = curve["step"] <= step
    if not known.any():
        return ""
    words = _("While it trained, {share} of the answers were right, measured at step {at}.")
    return words.format(
        share=show.percent(float(curve["accuracy"][known][-1])),
        at=f"{int(curve['step'][known][-1]):,}",
    )


def _counted(found: Answers) -> str:
    is_right, _loss = of_examples(found)
    n, wrong = len(is_right), int((~is_right).sum())
    low, high = wilson(n - wrong, n)
    numbers = {
        "n": f"{n:,}",
        "wrong": f"{wrong:,}",
        "share": show.percent((n - wrong) / n),
        "low": show.percent(low),
        "high": show.percent(high),
    }
    if found.unit == "picture":
        words = _(
            "**{wrong} of {n}** validation pictures wrong: {share} right (95 % interval {low} to "
            "{high})."
        )
        return words.format(**numbers)
    if found.unit == "label":
        words = _(
            "**{wrong} of {n}** validation sentences wrong: {share} right (95 % interval {low} to "
            "{high})."
        )
        return words.format(**numbers)
    words = _(
        "**{wrong} of {n}** validation texts go wrong when the model writes them alone: {share} "
        "right (95 % interval {low} to {high}). After the true beginning {tokens} of {all} tokens "
        "are right."
    )
    share = show.percent(found.n_right / len(found.truth))
    return words.format(**numbers, tokens=share, all=f"{len(found.truth):,}")


def _language(found: Answers) -> str:
    words = _(
        "**{loss} nats** a token in the mean of {n} validation tokens; the likeliest token is "
        "right for {share} (95 % interval {low} to {high})."
    )
    n = len(found.truth)
    low, high = wilson(found.n_right, n)
    return words.format(
        loss=f"{float(found.loss.mean(dtype=float)):.3f}",
        n=f"{n:,}",
        share=show.percent(found.n_right / n),
        low=show.percent(low),
        high=show.percent(high),
    )


def _split(found: Answers) -> str:
    if found.n_examples < found.n_all:
        words = _("The first {n} of {all} validation examples; the test set is not touched.")
        return words.format(n=f"{found.n_examples:,}", all=f"{found.n_all:,}")
    return _("The test set is not touched.")
