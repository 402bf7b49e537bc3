"""What a tour asks of a run, with the answer that the run itself gives.

An answer of "" is not known yet: the training has not come so far, or nobody has answered and it
would take seconds to measure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention.alignment import clearest_row, truth_on_map
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.inspect.attention.heads import first_heads
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.example import example_without
from tfm_core.inspect.knockouts.measure import Score
from tfm_core.inspect.knockouts.parts import Part, parts_of
from tfm_core.inspect.progress import moments
from tfm_core.inspect.questions import Question
from tfm_core.inspect.tours.waits import (
    TourRun,
    aligns_from,
    guessing_left_at,
    newest_alignment,
)
from tfm_core.probe.labels import axes, modules_by_kind, patches_per_side
from tfm_core.runs.curves import Curves
from tfm_core.runs.record.outcome import loss_progress
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError, joined, percent

UNKNOWN = ""
HARDLY, HALF, NEARLY = N_("Hardly any"), N_("About half"), N_("Nearly all")
EARLY, FIRST_HALF, SECOND_HALF = (
    N_("In the first tenth of the training"),
    N_("After that, in the first half"),
    N_("In the second half"),
)
NONE, SOME, ALL = N_("None"), N_("Some"), N_("All")
MORE, AS_MANY, FEWER = N_("More than before"), N_("About as many"), N_("Fewer than before")
_SAME = 0.01  # of accuracy: a smaller change is none
_MOST, _LEAST = 0.9, 0.1  # of what was right before
_OPTIONS = 3


def right_at_random(on: TourRun) -> Question:
    """Ask how many tokens are right before the first step."""
    known = _accuracies(on.curves)
    answer, because = UNKNOWN, ""
    if known:
        (_step, first), (step, last) = known[0], known[-1]
        answer = HARDLY if first < 0.2 else HALF if first < 0.8 else NEARLY
        because = N_(
            "{first} at step 0, {last} at step {step}.",
            first=percent(first),
            last=percent(last),
            step=f"{step:,}",
        )
    text = N_("With random weights, how many words does it get right?")
    return Question(text, answer, because, (HARDLY, HALF, NEARLY))


def leaves_guessing(on: TourRun) -> Question:
    """Ask when the loss leaves the line of guessing."""
    step, total = guessing_left_at(on.curves), _total(on)
    progress = loss_progress(on.curves)
    answer, because = UNKNOWN, ""
    if step is not None and progress is not None:
        answer = _part(step, total)
        because = N_(
            "At step {step} of {total}. Guessing among all tokens is a loss of {guessing:.2f}.",
            step=f"{step:,}",
            total=f"{total:,}",
            guessing=progress.guessing,
        )
    text = N_("When will the loss leave the dotted line of guessing?")
    return Question(text, answer, because, (EARLY, FIRST_HALF, SECOND_HALF))


def heads_that_align(on: TourRun) -> Question:
    """Ask how many heads of the attention to the source align."""
    scores = newest_alignment(on.run)
    cross = modules_by_kind(on.run.experiment).get("cross", [])
    n = len(cross) * on.run.experiment.model.n_heads
    k = sum(row["share"] >= aligns_from(row["chance"]) for row in scores if row["module"] in cross)
    is_known = bool(scores) and (k > 0 or not on.run.status.is_active)
    answer = (NONE if not k else ALL if k == n else SOME) if is_known else UNKNOWN
    because = N_("{k} of {n} have most of their attention on the true source words.", k=k, n=n)
    text = N_("How many of the {n} heads learn to read the words that they translate?", n=n)
    return Question(text, answer, because, (NONE, SOME, ALL))


def where_it_reads(on: TourRun) -> Question:
    """Ask which source word the head that aligns best reads, for the clearest row of its map."""
    experiment, example = on.run.experiment, _newest_example(on.run)
    layer, head = first_heads(on.run).get("cross", (0, 0))  # on which Attention opens
    module = modules_by_kind(experiment)["cross"][layer]
    weights = example.attention[module][head]
    truth = truth_on_map(experiment, example.item, module)
    row = clearest_row(weights, example.masks[module], truth) or 0
    keys, best = axes(experiment, example.item, module).key, int(weights[row].argmax())
    others = [word for word in dict.fromkeys(example.item["src"]) if word != keys[best]]
    words = [keys[best], *others][:_OPTIONS]
    options = tuple(_quoted(word) for word in dict.fromkeys(keys) if word in words)
    because = N_(
        "“{word}” gets {share} of its attention.",
        word=keys[best],
        share=percent(float(weights[row, best])),
    )
    text = N_(
        "This head is about to write “{token}”. Which word does it read most?",
        token=example.item["tgt"][row],
    )
    return Question(text, _quoted(keys[best]), because, options)


def without_mask(on: TourRun) -> Question:
    """Ask what a trained decoder does that sees the tokens to come. Measured once answered."""
    answer, because = UNKNOWN, ""
    if on.can_be_measured:
        before, after = _scores(on.run, causal_mask(on.run.experiment))
        change = after.accuracy - before.accuracy
        answer = MORE if change > _SAME else FEWER if change < -_SAME else AS_MANY
        because = _measured(before, after)
        if answer == FEWER:
            because = joined(because, Paragraph("tours/never-saw"))
    text = Paragraph("tours/without-mask")
    return Question(text, answer, because, (MORE, AS_MANY, FEWER))


def decoder_passes(on: TourRun) -> Question:
    """Ask how often the decoder runs for one sentence."""
    example = _newest_example(on.run)
    once, read = N_("Once"), N_("Once for each word that it reads")
    written = N_("Once for each token that it writes")
    tokens = example.answer or ()
    because = N_(
        "{n} tokens and the end of the sentence: {passes} passes.",
        n=len(tokens),
        passes=len(tokens) + 1,
    )
    text = N_("How often does the decoder run for this sentence?")
    return Question(text, written, because, (once, read, written))


def without_cross_attention(on: TourRun) -> Question:
    """Ask what is left without any attention to the source. Measured once answered."""
    options = N_("Nearly all tokens stay right"), N_("Some stay right"), N_("None stays right")
    answer, because = UNKNOWN, ""
    if on.can_be_measured:
        off = cross_attention(on.run.experiment)
        before, after = _scores(on.run, off)
        answer = options[_band(before, after)]
        without = example_without(on.run, 0, off, "zero", measure.n_first(on.run))
        because = _measured(before, after)
        if answer != options[0] and without.answer_text:
            told = Paragraph(
                "tours/no-source",
                source=str(without.item["src_text"]).removesuffix("."),
                answer=without.answer_text.removesuffix("."),
            )
            because = joined(because, told)
    text = N_("All cross-attention is off. What do you expect?")
    return Question(text, answer, because, options)


def cross_attention(experiment: Experiment) -> tuple[Part, ...]:
    """Return every attention of the decoder to the source."""
    return tuple(
        part
        for part in parts_of(experiment)
        if part.kind == "sublayer" and part.sublayer == "cross"
    )


def causal_mask(experiment: Experiment) -> tuple[Part, ...]:
    """Return the decoder's causal mask, empty where it has none."""
    return tuple(part for part in parts_of(experiment) if part.code == "decoder.self.mask")


def positions(experiment: Experiment) -> tuple[Part, ...]:
    """Return the encoder's positions, empty where it has none."""
    return tuple(part for part in parts_of(experiment) if part.code == "encoder.positions")


# ---- of pictures

_LEVELS = 0.1, 0.5, 0.9
_GUESSES = 1.5  # times the accuracy of guessing, up to which it is no better


def sure_at_random(on: TourRun) -> Question:
    """Ask how much probability random weights give to the right class."""
    answer, because = UNKNOWN, ""
    options = tuple(N_("About {share}%", share=round(100 * level)) for level in _LEVELS)
    steps, probe = on.run.snapshot_steps(), on.run.probe()
    probabilities = on.run.snapshot(steps[0]).probabilities if steps else None
    if probabilities is not None:
        labels = [int(item["label"]) for item in probe.items]
        share = float(
            np.mean([row[label] for row, label in zip(probabilities, labels, strict=True)])
        )
        answer = options[int(np.abs(np.subtract(_LEVELS, share)).argmin())]
        because = N_(
            "{share} on average over {n} pictures at step {step}.",
            share=percent(share),
            n=len(labels),
            step=steps[0],
        )
    text = N_("Before training, how much probability does the right digit get?")
    return Question(text, answer, because, options)


def patches_read(on: TourRun) -> Question:
    """Ask how many tokens a picture becomes."""
    experiment, images = on.run.experiment, on.run.probe().images
    side, pixels = patches_per_side(experiment), 28 if images is None else images.shape[-1]
    n = side**2 + experiment.has_cls
    counts = sorted({n, pixels**2, len(experiment.task.class_names)})
    because = N_("{side} × {side} patches.", side=side)
    if experiment.has_cls:
        because = N_("{side} × {side} patches, and CLS, which gives the answer.", side=side)
    options = {count: N_("{n} tokens", n=f"{count:,}") for count in counts}
    text = N_("The encoder reads tokens. How many does this picture become?")
    return Question(text, options[n], because, tuple(options.values()))


def reads_most(on: TourRun) -> Question:
    """Ask when most unseen pictures are read."""
    known, total = _accuracies(on.curves), _total(on)
    top = max((share for _step, share in known), default=0.0)
    is_over = not on.run.status.is_active
    level = next((one for one in (0.9, 0.5, 0.2) if top >= one or not is_over), 0.0)
    step = next((step for step, share in known if level and share >= level), None)
    answer, because = UNKNOWN, ""
    if step is not None:
        answer = _part(step, total)
        values = {"step": f"{step:,}", "total": f"{total:,}", "share": percent(top)}
        because = N_("At step {step} of {total}. The highest so far is {share}.", **values)
    text = N_("When does it read {share}% of unseen digits?", share=round(100 * level))
    return Question(text, answer, because, (EARLY, FIRST_HALF, SECOND_HALF))


def attention_on_ink(on: TourRun) -> Question:
    """Ask whether heads read the patches that a digit covers more than even attention would."""
    more, even_too, less = N_("More than even attention"), N_("About as much"), N_("Less")
    answer, because = UNKNOWN, ""
    steps = on.run.snapshot_steps()
    found = moments.attention_on_ink(on.run, steps[-1]) if steps else None
    if found is not None:
        share, even = found
        ratio = share / even if even else 1.0
        answer = more if ratio > 1.1 else less if ratio < 1 / 1.1 else even_too
        values = {"share": percent(share), "even": percent(even)}
        because = N_("All heads together: {share}; even attention would give {even}.", **values)
    text = N_("How much do the heads read the patches with ink?")
    return Question(text, answer, because, (more, even_too, less))


def without_positions(on: TourRun) -> Question:
    """Ask what is left without positions. Measured once answered."""
    options = N_("Nearly all stay right"), N_("Some stay right"), N_("It can only guess")
    answer, because = UNKNOWN, ""
    if on.can_be_measured:
        experiment = on.run.experiment
        before, after = _scores(on.run, positions(experiment))
        guessed = _GUESSES / len(experiment.task.class_names)
        answer = options[2 if after.accuracy <= guessed else min(_band(before, after), 1)]
        because = _measured(before, after)
    text = N_("Without positions the patches are in no order. What do you expect?")
    return Question(text, answer, because, options)


# ---- what several ask


def _accuracies(curves: Curves) -> list[tuple[int, float]]:
    """Return step and accuracy of each validation, ascending."""
    measured = curves.unseen
    pairs = zip(measured["step"], measured["accuracy"], strict=True)
    return [(int(step), float(share)) for step, share in pairs if np.isfinite(share)]


def _total(on: TourRun) -> int:
    return int(on.curves.started.get("total_steps") or on.run.experiment.trained.steps)


def _part(step: int, total: int) -> str:
    return EARLY if step <= total / 10 else FIRST_HALF if step <= total / 2 else SECOND_HALF


def _quoted(word: str) -> str:
    return N_("“{word}”", word=word)


def _newest_example(run: Run) -> Example:
    """Return the first example at the newest snapshot. Raises ValueError without one."""
    steps, probe = run.snapshot_steps(), run.probe()
    if not steps:
        raise StudentError("This run has no snapshot yet.")
    return example_of(run.experiment, probe, run.snapshot(steps[-1]), 0)


def _scores(run: Run, off: Sequence[Part]) -> tuple[Score, Score]:
    """Return the scores with everything on, and without some parts, as Knock-outs measures them."""
    n = measure.n_first(run)
    return measure.measured(run, (), "zero", n), measure.measured(run, off, "zero", n)


def _band(before: Score, after: Score) -> int:
    """Return 0 where nearly all that was right stays right, 2 where nearly nothing does, else 1."""
    kept = after.accuracy / before.accuracy if before.accuracy else 1.0
    return 0 if kept >= _MOST else 2 if kept <= _LEAST else 1


def _measured(before: Score, after: Score) -> str:
    return N_(
        "Right before: {before}; now: {after}, on {n} unseen examples.",
        before=percent(before.accuracy),
        after=percent(after.accuracy),
        n=after.n,
    )
