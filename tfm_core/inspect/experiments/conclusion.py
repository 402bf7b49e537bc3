"""What came of an experiment that teaches: this run, other seeds, and whether it was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfm_core.inspect.compare.spread import ACCURACY, Measure, paired, sentence
from tfm_core.inspect.experiments.demonstration import Demonstration, Finding
from tfm_core.inspect.experiments.result import Result
from tfm_core.sentences import N_, Paragraph, Sentence

WHOLES = Measure(N_("sequence accuracy"))


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the runs showed.

    findings: of each other arm beside the first that has a run, with one seed. seeds: what several
    seeds say of the same, where there are some. is_expected: None where nothing was found yet.
    """

    findings: tuple[Finding, ...] = ()
    seeds: tuple[Sentence, ...] = ()
    is_expected: bool | None = None

    @property
    def verdict(self) -> Sentence | None:
        """Whether this is what was expected, in a sentence."""
        if self.is_expected is None:
            return None
        if self.is_expected:
            return N_("This was expected.")
        if self.seeds:
            return N_("This was not expected.")
        return Paragraph("findings/unexpected-one-seed")


def conclude(
    demonstration: Demonstration, results: Mapping[str, Mapping[int, Result]]
) -> Conclusion:
    """Return what came of the runs that are over. results: name of the arm -> seed -> result."""
    known = [arm.name for arm in demonstration.arms if results.get(arm.name)]
    if len(known) < 2:
        return Conclusion()
    first, *others = known
    findings, said = [], []
    for other in others:
        shared = sorted(set(results[first]) & set(results[other]))
        if not shared:
            continue
        seed = shared[0]
        findings.append(demonstration.compare(results[first][seed], results[other][seed]))
        if len(shared) > 1:
            said.append(_of_seeds(results[first], results[other]))
    if not findings:
        return Conclusion()
    is_expected = all(finding.kind in demonstration.expected for finding in findings)
    return Conclusion(tuple(findings), tuple(said), is_expected)


def _of_seeds(first: Mapping[int, Result], second: Mapping[int, Result]) -> Sentence:
    every = [*first.values(), *second.values()]
    counts_wholes = all(one.wholes is not None or one.accuracy is None for one in every)
    measure = WHOLES if counts_wholes else ACCURACY
    sides = [
        {
            seed: None if one.diverged else (one.wholes if counts_wholes else one.accuracy)
            for seed, one in side.items()
        }
        for side in (first, second)
    ]
    names = [next(iter(side.values())).label for side in (first, second)]
    return sentence(paired(sides[0], sides[1]), measure, names[0], names[1])
