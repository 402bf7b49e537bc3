"""Tasks that look into runs: at a head, at what a mistake does, for a bug."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.bugs.bugs import BUGS, Bug, basis, bug_of, with_bug
from tfm_core.inspect.experiments import result
from tfm_core.lessons.checks.task import Asks, Task, Verdict, Work, named_run, wrong_run
from tfm_core.lessons.words import TaskWords
from tfm_core.probe.labels import modules_by_kind
from tfm_core.sentences import N_, StudentError, percent


class HeadAligns(Task):
    """The pupil names a head that attends to the true source words.

    run: an id, or "" for the pupil's newest finished run. share: of its attention, at least.
    tokens: the target tokens that count, such as all verbs; without any, all do.
    """

    check: Literal["head_aligns"]
    run: str = ""
    kind: Literal["cross", "picture", "slots", "sequence"] = "cross"
    share: float = Field(alignment.LEARNED, gt=0, le=1)
    tokens: list[str] = Field(default_factory=list, max_length=500)
    asks: ClassVar[Asks] = "head"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the run, too."""
        yield from super().problems(words, experiment)
        if self.run and (wrong := wrong_run(self.run)) is not None:
            yield wrong
        if not self.run and experiment is None:
            yield N_("name a run, or add [experiment].")

    def judge(self, answer: str, work: Work) -> Verdict:
        """Measure the head in the last snapshot of the run."""
        run = named_run(self.run, work)
        modules = modules_by_kind(run.experiment).get(self.kind, [])
        steps = run.snapshot_steps()
        if not modules or not steps:
            raise StudentError("“{name}” has no such attention to look at.", name=run.meta.name)
        snapshot = run.snapshot(steps[-1])
        scores = alignment.score(run.experiment, run.probe(), snapshot, tokens=self.tokens)
        layer, head = (int(number) for number in answer.split("."))
        of_kind = scores[scores["kind"] == self.kind]
        found = of_kind[(of_kind["layer"] == layer) & (of_kind["head"] == head)]
        if found.empty:
            raise StudentError(
                "There is no such head: layers 1 to {n_layers}, heads 1 to {n_heads}.",
                n_layers=len(modules),
                n_heads=max(of_kind["head"], default=0),
            )
        share, chance, n = found[["share", "chance", "n_tokens"]].iloc[0]
        words = N_(
            "Layer {layer}, head {head}: {share} of its attention is on the true source words of "
            "{n} tokens; even attention has {chance}.",
            layer=layer,
            head=head,
            share=percent(share),
            n=int(n),
            chance=percent(chance),
        )
        return Verdict(bool(share >= self.share), words, run.id, {"share": float(share)})


class FailsWithout(Task):
    """One of the pupil's own runs, trained with a mistake, looks right and fails alone.

    mistake: its name. given_at_least: accuracy given the true tokens so far. alone_at_most: share
    of unseen examples that it then writes right by itself.
    """

    check: Literal["fails_without"]
    mistake: str = "no-causal-mask"
    given_at_least: float = Field(0.9, ge=0, le=1)
    alone_at_most: float = Field(0.5, ge=0, le=1)

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the mistake, too."""
        yield from super().problems(words, experiment)
        if self.mistake not in MISTAKES:
            known = ", ".join(MISTAKES)
            yield N_(
                "there is no mistake {name}; use one of {known}.", name=self.mistake, known=known
            )
        if experiment is None:
            yield N_("the lesson trains nothing: add [experiment].")

    def judge(self, answer: str, work: Work) -> Verdict:
        """Let the newest run with the mistake write unseen examples by itself."""
        label = MISTAKES[self.mistake].label
        run = next((run for run in work.finished if self.mistake in made_in(run.experiment)), None)
        if run is None:
            raise StudentError("Train a run with “{mistake}” to its end first.", mistake=label)
        found = result.read(run, "", writes_freely=True)
        if found.accuracy is None or found.written is None:
            raise StudentError("“{name}” kept no weights to write with.", name=run.meta.name)
        given, alone = found.accuracy, found.written.share
        words = N_(
            "“{name}”: {given} of tokens right while it is given the true ones, {alone} of {n} "
            "sentences right when it writes alone.",
            name=run.meta.name,
            given=percent(given),
            alone=percent(alone),
            n=found.written.n,
        )
        is_right = given >= self.given_at_least and alone <= self.alone_at_most
        return Verdict(is_right, words, run.id, {"given": given, "alone": alone})


class BugNamed(Task):
    """The pupil names the bug that a suspect hides, or says which of some runs has one.

    runs: ids of runs of which one has a bug; none: the suspect that the pupil trained last on Find
    the bug, whose bug is still hidden.
    """

    check: Literal["bug_named"]
    runs: list[str] = Field(default_factory=list, max_length=6)
    asks: ClassVar[Asks] = "choice"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the runs, too."""
        yield from super().problems(words, experiment)
        if len(self.runs) == 1 or len(set(self.runs)) != len(self.runs):
            yield N_("name at least two runs, each once, or none.")
        yield from filter(None, map(wrong_run, self.runs))

    def options(self, words: TaskWords) -> Mapping[str, str]:
        """Return the runs, or the bugs that a suspect can hide."""
        if self.runs:
            return {
                name: N_("Run {letter}", letter=chr(65 + i)) for i, name in enumerate(self.runs)
            }
        labels = {bug.name: bug.label for bug in BUGS.values() if _can_be_hidden(bug)}
        return dict(sorted(labels.items(), key=lambda pair: str(pair[1])))

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the settings of the runs."""
        if self.runs:
            runs = [named_run(run_id, work) for run_id in self.runs]
            given = next(run for run in runs if run.id == answer)
            bugs = [
                bug_of(other.experiment, given.experiment) for other in runs if other is not given
            ]
            is_right = any(bugs)
            words = N_("Nothing is wrong with this one.")
            if bug := next(filter(None, bugs), None):
                words = N_("It has a bug: {label}.", label=bug.label)
            return Verdict(is_right, words, answer)
        suspects = [run for run in work.runs if run.problem is None and run.meta.is_suspect]
        if not suspects:
            raise StudentError("Train a new suspect first: its bug must still be hidden.")
        run = suspects[0]
        bug = bug_of(basis(), run.experiment)
        if bug is None or run.status.state != "finished":
            raise StudentError("Wait until “{name}” has finished.", name=run.meta.name)
        if bug.name == answer:
            return Verdict(True, bug.means, run.id)
        words = N_("“{name}” hides something else.", name=run.meta.name)
        return Verdict(False, words, run.id)


def made_in(experiment: Experiment) -> tuple[str, ...]:
    """Return the mistakes of an experiment."""
    training = experiment.training
    return (*getattr(experiment.model, "mistakes", ()), *(training.mistakes if training else ()))


def _can_be_hidden(bug: Bug) -> bool:
    try:
        return bug_of(basis(), with_bug(basis(), bug)) is not None
    except (ConfigError, KeyError):
        return False
