"""What the page says of all answers together."""

from __future__ import annotations

from pages.i18n import _, paragraph
from pages.ui import recorded, runs_access, show
from pages.ui.typed import escape
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.examples import n_alike
from tfm_core.inspect.errors.groups import of_examples
from tfm_core.inspect.practice.intervals import wilson
from tfm_core.runs.run import Run


def summary(run: Run, found: Answers) -> str:
    """Return how many answers are right, of how many, and of which data."""
    counts = _language(found) if found.is_language else _counted(found)
    if found.n_examples < found.n_all:
        data = _(
            "The first {n} of {all} validation examples; the test set is not touched.",
            n=f"{found.n_examples:,}",
            all=f"{found.n_all:,}",
        )
    else:
        data = _("The test set is not touched.")
    words = f"{recorded.badge(run)} {escape(run.meta.name)}: {counts} {data}".strip()
    alike = n_alike(run, found)
    if not alike:
        return words
    return f"{words} {paragraph('mistakes/alike', n=f'{alike:,}')}"


def measured_then(run: Run, step: int) -> str:
    """Return what was measured on the validation set while the run trained, at or before a step."""
    curve = runs_access.curves(run).validation
    known = curve["step"] <= step
    if not known.any():
        return ""
    return _(
        "During training, at step {at}: {share} of the answers right.",
        share=show.percent(float(curve["accuracy"][known][-1])),
        at=f"{int(curve['step'][known][-1]):,}",
    )


def _counted(found: Answers) -> str:
    is_right, _loss = of_examples(found)
    n, wrong = len(is_right), int((~is_right).sum())
    low, high = wilson(n - wrong, n)
    words = paragraph(
        "mistakes/wrong",
        n=f"{n:,}",
        wrong=f"{wrong:,}",
        share=show.percent((n - wrong) / n),
        low=show.percent(low),
        high=show.percent(high),
    )
    if found.unit != "token":
        return words
    tokens, total = show.percent(found.n_right / len(found.truth)), f"{len(found.truth):,}"
    forced = _("With teacher forcing, {tokens} of {all} tokens.", tokens=tokens, all=total)
    return f"{words} {forced}"


def _language(found: Answers) -> str:
    n = len(found.truth)
    low, high = wilson(found.n_right, n)
    return paragraph(
        "mistakes/language",
        loss=f"{float(found.loss.mean(dtype=float)):.3f}",
        n=f"{n:,}",
        share=show.percent(found.n_right / n),
        low=show.percent(low),
        high=show.percent(high),
    )
