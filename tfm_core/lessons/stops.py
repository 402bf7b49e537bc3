"""The stops of a tour: what each shows of a run, waits for and asks; the run itself answers.

An answer of "" is not known yet: the training has not come so far, or nobody has answered and it
would take seconds to measure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.base import Config
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect import moments
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.alignment import Row, clearest_row, truth_on_map
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.inspect.attention.maps import first_heads
from tfm_core.inspect.attention.pictures import reads_drawings
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Score, example_without
from tfm_core.inspect.knockouts.parts import Part, parts_of
from tfm_core.inspect.questions import Question
from tfm_core.lessons.task import Asks, Task, Verdict, Work
from tfm_core.probe.labels import CLS, axes, modules_by_kind, patches_per_side
from tfm_core.runs.curves import Curves
from tfm_core.runs.outcome import MIN_PROGRESS, loss_progress
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError, joined, percent

UNKNOWN = ""
HARDLY, HALF, NEARLY = N_("Hardly any"), N_("About half"), N_("Nearly all")
EARLY, FIRST_HALF, SECOND_HALF = (
    N_("In the first tenth of the training"),
    N_("Later, in the first half"),
    N_("In the second half"),
)
NONE, SOME, ALL = N_("None"), N_("Some"), N_("All")
MORE, AS_MANY, FEWER = N_("More than before"), N_("About the same"), N_("Fewer than before")
_SAME = 0.01  # of accuracy: a smaller change is none
_MOST, _LEAST = 0.9, 0.1  # of what was right before
_OPTIONS = 3
_LEVELS = 0.1, 0.5, 0.9
_GUESSES = 1.5  # times the accuracy of guessing, up to which it is no better


class Over(Config):
    """What a tour leads over: the run of a preset that comes with the app, or one like it.

    parts: names of ``PARTS`` that a model must have, as its stops switch them off.
    """

    model_config = ConfigDict(strict=True)

    preset: str
    recorded: str
    parts: list[str]

    def fits(self, experiment: Experiment) -> bool:
        """Return whether the tour can lead over a run of an experiment."""
        known = PRESETS[self.preset].experiment
        if reads_drawings(known):
            is_alike = reads_drawings(experiment)
        else:
            kinds = [(one.task.name, one.model.family) for one in (known, experiment)]
            is_alike = kinds[0] == kinds[1]
        return is_alike and all(PARTS[name](experiment) for name in self.parts)


class Stop(Task):
    """A task of a tour, which looks at its run, and may ask what the run itself answers.

    outlines: CSS selectors of what it speaks of, the first of which is brought into sight;
    ``host >>> inner`` is inside a component. opens: a name of ``VIEWS``, which adds to ``view``.
    off: a name of ``PARTS``, which the page has switched off.
    question: a name of ``QUESTIONS``, or "". veils: what would give the answer away, blurred until
    then; not of a run that trains, which is to be watched. waits: a name of ``WAITS`` for what must
    happen before it goes on, or "". starts: it offers to train the tour's preset.
    """

    check: Literal["stop"] = "stop"
    outlines: list[str] = Field(min_length=1)
    opens: str = ""
    off: str = ""
    question: str = ""
    veils: list[str] = Field(default_factory=list)
    waits: str = ""
    starts: bool = False
    asks: ClassVar[Asks] = "choice"

    def query(self, run: Run) -> dict[str, str]:
        """Return what the page's address says over a run."""
        query = {"run": run.id, **self.view, **(VIEWS[self.opens](run) if self.opens else {})}
        if self.off:
            query["off"] = ",".join(part.code for part in PARTS[self.off](run.experiment))
        return query

    def waited(self, work: Work) -> Verdict | None:
        """Return whether what it waits for has happened; None if it waits for nothing.

        Raises OSError and ValueError.
        """
        return WAITS[self.waits](work) if self.waits else None

    def asked(self, work: Work) -> Question | None:
        """Return its question, if it has one. Raises OSError and ValueError."""
        return QUESTIONS[self.question](work) if self.question else None

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the answer of the run."""
        question = self.asked(work)
        if question is None or question.answer not in question.options:
            raise StudentError("Let’s see what the run shows.")
        return Verdict(question.is_right(answer), question.because, work.run.id)


# ---- what a page shows


def _sentence(run: Run) -> Mapping[str, str]:
    return {"view": "write", "method": "greedy", "text": str(run.probe().items[0]["src_text"])}


def _cross_head(run: Run) -> Mapping[str, str]:
    """Return the query of the head on which Attention opens, whole: the page then leaves it so.

    What a page adds to its address is one more entry of the browser's history.
    """
    layer, head = first_heads(run).get("cross", (0, 0))
    return {"kind": "cross", "layer": str(layer + 1), "head": str(head + 1), "example": "1"}


def _patches_head(run: Run) -> Mapping[str, str]:
    layer, head = first_heads(run).get("patches", (0, 0))
    place = {"layer": str(layer + 1), "head": str(head + 1), "example": "1"}
    return {"kind": "patches", **place, "patch": CLS if run.experiment.has_cls else "mean"}


VIEWS: Mapping[str, Callable[[Run], Mapping[str, str]]] = {
    "sentence": _sentence,
    "cross-head": _cross_head,
    "patches-head": _patches_head,
}


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


PARTS: Mapping[str, Callable[[Experiment], tuple[Part, ...]]] = {
    "cross-attention": cross_attention,
    "causal-mask": causal_mask,
    "positions": positions,
}


# ---- what it waits for


def left_guessing(work: Work) -> Verdict:
    """Wait until the training loss has come further than the answers' frequencies take it."""
    progress = loss_progress(work.curves)
    if progress is None or not len(progress.steps):
        return Verdict(False, N_("The first step isn't done yet."))
    step = guessing_left_at(work.curves)
    if step is not None:
        return Verdict(True, N_("The loss fell below guessing at step {step}.", step=f"{step:,}"))
    values = {"loss": float(progress.running[-1]), "guessing": progress.guessing}
    return Verdict(False, N_("The loss is {loss:.2f}; guessing has {guessing:.2f}.", **values))


def guessing_left_at(curves: Curves) -> int | None:
    """Return the first step with MIN_PROGRESS or more of the way done, None before it."""
    progress = loss_progress(curves)
    if progress is None:
        return None
    reached = np.flatnonzero(progress.shares >= MIN_PROGRESS)
    return int(progress.steps[reached[0]]) if len(reached) else None


def head_aligns(work: Work) -> Verdict:
    """Wait until a head has most of its attention on the true source words."""
    best = alignment.best_head(newest_alignment(work.run))
    if best is None:
        return Verdict(False, N_("No snapshot can be scored yet."))
    values = {"layer": best["layer"], "head": best["head"], "share": percent(best["share"])}
    if best["share"] >= aligns_from(best["chance"]):
        sentence = N_(
            "Layer {layer}, head {head} puts {share} of its attention on the true source words.",
            **values,
        )
        return Verdict(True, sentence)
    return Verdict(False, N_("Best so far: layer {layer}, head {head}, {share}.", **values))


def is_trained(work: Work) -> Verdict:
    """Wait until a run has ended, with weights."""
    status = work.run.status
    if status.is_active or not work.run.has_checkpoint:
        values = {"step": f"{status.step:,}", "total": f"{status.total_steps:,}"}
        return Verdict(False, N_("Training: step {step} of {total}.", **values))
    return Verdict(True, "")


def aligns_from(chance: float) -> float:
    """Return the share of attention on true source words from which a head is said to align.

    chance: the share of even attention.
    """
    return max(alignment.LEARNED, 2 * chance)


def newest_alignment(run: Run) -> list[Row]:
    """Return the scores of the heads in the newest readable snapshot; none without any."""
    for step in reversed(run.snapshot_steps()):
        try:
            return alignment.scores_of_step(run, step)
        except (OSError, ValueError):  # being written, or damaged
            continue
    return []


WAITS: Mapping[str, Callable[[Work], Verdict]] = {
    "left-guessing": left_guessing,
    "head-aligns": head_aligns,
    "is-trained": is_trained,
}


# ---- what it asks


def right_at_random(work: Work) -> Question:
    """Ask how many tokens are right before the first step."""
    known = _accuracies(work.curves)
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
    text = N_("How many words does it get right with random weights?")
    return Question(text, answer, because, (HARDLY, HALF, NEARLY))


def leaves_guessing(work: Work) -> Question:
    """Ask when the loss leaves the line of guessing."""
    step, total = guessing_left_at(work.curves), _total(work)
    progress = loss_progress(work.curves)
    answer, because = UNKNOWN, ""
    if step is not None and progress is not None:
        answer = _part(step, total)
        because = N_(
            "At step {step} of {total}. Guessing among all tokens has a loss of {guessing:.2f}.",
            step=f"{step:,}",
            total=f"{total:,}",
            guessing=progress.guessing,
        )
    text = N_("When will the loss fall below guessing?")
    return Question(text, answer, because, (EARLY, FIRST_HALF, SECOND_HALF))


def heads_that_align(work: Work) -> Question:
    """Ask how many heads of the attention to the source align."""
    scores = newest_alignment(work.run)
    cross = modules_by_kind(work.run.experiment).get("cross", [])
    n = len(cross) * work.run.experiment.model.n_heads
    k = sum(row["share"] >= aligns_from(row["chance"]) for row in scores if row["module"] in cross)
    is_known = bool(scores) and (k > 0 or not work.run.status.is_active)
    answer = (NONE if not k else ALL if k == n else SOME) if is_known else UNKNOWN
    because = N_("{k} of {n} put most of their attention on the true source words.", k=k, n=n)
    text = N_("How many of the {n} heads learn to read the word they translate?", n=n)
    return Question(text, answer, because, (NONE, SOME, ALL))


def where_it_reads(work: Work) -> Question:
    """Ask which source word the head that aligns best reads, for the clearest row of its map."""
    experiment, example = work.run.experiment, _newest_example(work.run)
    layer, head = first_heads(work.run).get("cross", (0, 0))  # on which Attention opens
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


def without_mask(work: Work) -> Question:
    """Ask what a trained decoder does that sees the tokens to come. Measured once answered."""
    answer, because = UNKNOWN, ""
    if work.can_be_measured:
        before, after = _scores(work.run, causal_mask(work.run.experiment))
        change = after.accuracy - before.accuracy
        answer = MORE if change > _SAME else FEWER if change < -_SAME else AS_MANY
        because = _measured(before, after)
        if answer == FEWER:
            because = joined(because, Paragraph("tours/never-saw"))
    text = Paragraph("tours/without-mask")
    return Question(text, answer, because, (MORE, AS_MANY, FEWER))


def decoder_passes(work: Work) -> Question:
    """Ask how often the decoder runs for one sentence."""
    example = _newest_example(work.run)
    once, read = N_("Once"), N_("Once for each word that it reads")
    written = N_("Once for each token that it writes")
    tokens = example.answer or ()
    because = N_(
        "{passes} times: once for each of {n} tokens, and for the end of the sentence.",
        n=len(tokens),
        passes=len(tokens) + 1,
    )
    text = N_("How often does the decoder run for this sentence?")
    return Question(text, written, because, (once, read, written))


def without_cross_attention(work: Work) -> Question:
    """Ask what is left without any attention to the source. Measured once answered."""
    options = N_("Nearly all tokens stay right"), N_("Some stay right"), N_("None stays right")
    answer, because = UNKNOWN, ""
    if work.can_be_measured:
        off = cross_attention(work.run.experiment)
        before, after = _scores(work.run, off)
        answer = options[_band(before, after)]
        without = example_without(work.run, 0, off, "zero", measure.default_examples(work.run))
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


def sure_at_random(work: Work) -> Question:
    """Ask how much probability random weights give to the right class."""
    answer, because = UNKNOWN, ""
    options = tuple(N_("About {share}%", share=round(100 * level)) for level in _LEVELS)
    steps, probe = work.run.snapshot_steps(), work.run.probe()
    probabilities = work.run.snapshot(steps[0]).probabilities if steps else None
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


def patches_read(work: Work) -> Question:
    """Ask how many tokens a picture becomes."""
    experiment, images = work.run.experiment, work.run.probe().images
    side, pixels = patches_per_side(experiment), 28 if images is None else images.shape[-1]
    n = side**2 + experiment.has_cls
    counts = sorted({n, pixels**2, len(experiment.task.class_names)})
    because = N_("{side} × {side} patches.", side=side)
    if experiment.has_cls:
        because = N_("{side} × {side} patches, and CLS for the answer.", side=side)
    options = {count: N_("{n} tokens", n=f"{count:,}") for count in counts}
    text = N_("The encoder reads tokens. How many does this picture become?")
    return Question(text, options[n], because, tuple(options.values()))


def reads_most(work: Work) -> Question:
    """Ask when most unseen pictures are read."""
    known, total = _accuracies(work.curves), _total(work)
    top = max((share for _step, share in known), default=0.0)
    is_over = not work.run.status.is_active
    level = next((one for one in (0.9, 0.5, 0.2) if top >= one or not is_over), 0.0)
    step = next((step for step, share in known if level and share >= level), None)
    answer, because = UNKNOWN, ""
    if step is not None:
        answer = _part(step, total)
        values = {"step": f"{step:,}", "total": f"{total:,}", "share": percent(top)}
        because = N_("At step {step} of {total}. The highest so far is {share}.", **values)
    text = N_("When will it read {share}% of unseen digits?", share=round(100 * level))
    return Question(text, answer, because, (EARLY, FIRST_HALF, SECOND_HALF))


def attention_on_ink(work: Work) -> Question:
    """Ask whether heads read the patches that a digit covers more than even attention would."""
    more, even_too, less = N_("More than even attention"), N_("About the same"), N_("Less")
    answer, because = UNKNOWN, ""
    steps = work.run.snapshot_steps()
    found = moments.attention_on_ink(work.run, steps[-1]) if steps else None
    if found is not None:
        share, even = found
        ratio = share / even if even else 1.0
        answer = more if ratio > 1.1 else less if ratio < 1 / 1.1 else even_too
        values = {"share": percent(share), "even": percent(even)}
        because = N_("All heads together give {share}; even attention would give {even}.", **values)
    text = N_("How much attention do patches with ink get?")
    return Question(text, answer, because, (more, even_too, less))


def without_positions(work: Work) -> Question:
    """Ask what is left without positions. Measured once answered."""
    options = N_("Nearly all stay right"), N_("Some stay right"), N_("It guesses")
    answer, because = UNKNOWN, ""
    if work.can_be_measured:
        experiment = work.run.experiment
        before, after = _scores(work.run, positions(experiment))
        guessed = _GUESSES / len(experiment.task.class_names)
        answer = options[2 if after.accuracy <= guessed else min(_band(before, after), 1)]
        because = _measured(before, after)
    text = N_("Without positions, patches have no order. What do you expect?")
    return Question(text, answer, because, options)


QUESTIONS: Mapping[str, Callable[[Work], Question]] = {
    "right-at-random": right_at_random,
    "leaves-guessing": leaves_guessing,
    "heads-that-align": heads_that_align,
    "where-it-reads": where_it_reads,
    "without-mask": without_mask,
    "decoder-passes": decoder_passes,
    "without-cross-attention": without_cross_attention,
    "sure-at-random": sure_at_random,
    "patches-read": patches_read,
    "reads-most": reads_most,
    "attention-on-ink": attention_on_ink,
    "without-positions": without_positions,
}


def _accuracies(curves: Curves) -> list[tuple[int, float]]:
    """Return step and accuracy of each validation, ascending."""
    measured = curves.unseen
    pairs = zip(measured["step"], measured["accuracy"], strict=True)
    return [(int(step), float(share)) for step, share in pairs if np.isfinite(share)]


def _total(work: Work) -> int:
    return int(work.curves.started.get("total_steps") or work.run.experiment.trained.steps)


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
    n = measure.default_examples(run)
    return measure.score_without(run, (), "zero", n), measure.score_without(run, off, "zero", n)


def _band(before: Score, after: Score) -> int:
    """Return 0 where nearly all that was right stays right, 2 where nearly nothing does, else 1."""
    kept = after.accuracy / before.accuracy if before.accuracy else 1.0
    return 0 if kept >= _MOST else 2 if kept <= _LEAST else 1


def _measured(before: Score, after: Score) -> str:
    return N_(
        "On {n} unseen examples, {before} were right before and {after} now.",
        before=percent(before.accuracy),
        after=percent(after.accuracy),
        n=after.n,
    )
