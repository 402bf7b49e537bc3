"""A known finding about Transformers: what shows it, what does not, and what its data allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import mean

from tfm_core.choices.config import CorpusTaskConfig, Experiment, ImageTaskConfig, TextTaskConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.data.corpus import column_sums
from tfm_core.data.corpus.in_context import GENERATORS, TRIGGERS, copy_floors, floors
from tfm_core.data.corpus.load import validation_sequences
from tfm_core.inspect.discover.memorising import labels
from tfm_core.inspect.experiments.trial import Arm, Trial
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.sentences import N_, Paragraph

Levels = Mapping[str, float]
"""Label -> value of the first metric: what is known before anything is trained."""
Example = tuple[tuple[str, bool], ...]
"""Pieces of a text, and whether each is marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phenomenon(Trial):
    """A finding, as runs of which the first shows it, and the others, its controls, do not.

    question: asked before. paper, address: where it is from. levels: what is known of the data.
    example: of the data, in a few pieces.
    """

    question: Question
    paper: str
    address: str
    levels: Callable[[Experiment], Levels]
    example: Callable[[Experiment], Example]

    @property
    def differs(self) -> str:
        """What differs from the paper."""
        return Paragraph(f"discover/{self.name}-differs")

    def known(self, seeds: Iterable[int] = ()) -> dict[str, float]:
        """Return the levels as means over the data of some seeds; of the base without any."""
        of_seeds = [_levels(self.name, seed) for seed in sorted({*seeds} or {self.base.seed})]
        return {label: mean(one[label] for one in of_seeds) for label in of_seeds[0]}


@cache
def _levels(name: str, seed: int) -> Levels:
    one = PHENOMENA[name]
    return one.levels(one.base.replace(seed=seed))


_SHOWN = 40  # letters of a chain


def _of_repeats(experiment: Experiment) -> Levels:
    n = len(GENERATORS[experiment.task.name].alphabet)
    return {N_("guessing"): 1 / n, N_("the whole repeat"): 1.0}


def _repeat(experiment: Experiment) -> Example:
    """Return a sequence with its stretch marked where it stands, and where it comes again."""
    task = experiment.task_as(CorpusTaskConfig)
    (tokens,) = validation_sequences(task, experiment.seed, n=1)
    again = GENERATORS[task.name].counts(tokens).index(True) - 1
    first = tokens.index(tokens[again])
    last = first + len(tokens) - again
    cuts = (0, first, last, again, len(tokens))
    pieces = ("".join(tokens[a:b]) for a, b in pairwise(cuts))
    return tuple((piece, n % 2 == 1) for n, piece in enumerate(pieces) if piece)


def _chain(experiment: Experiment) -> Example:
    """Return the beginnings of two chains."""
    task = experiment.task_as(CorpusTaskConfig)
    drawn = validation_sequences(task, experiment.seed, n=2)
    pieces = []
    for n, states in enumerate(drawn, 1):
        pieces += [(f"{n}:", False), ("".join(states[:_SHOWN]) + "…", True)]
    return tuple(pieces)


def _of_chains(experiment: Experiment) -> Levels:
    task = experiment.task_as(CorpusTaskConfig)
    found = floors(validation_sequences(task, experiment.seed))
    return {
        N_("guessing evenly"): found.uniform,
        N_("counting letters"): found.unigram,
        N_("counting pairs"): found.bigram,
    }


def _of_sums(experiment: Experiment) -> Levels:
    """Return what is right of unseen sums by knowing the trained ones, swapped too."""
    task = experiment.task_as(TextTaskConfig)
    return {N_("trained sums, swapped"): task.n_train / task.size**2}


def _sum(experiment: Experiment) -> Example:
    n = experiment.task_as(TextTaskConfig).size
    a, b = n // 2 + 2, 2 * n // 3
    return ((f"{a} + {b} =", False), (str((a + b) % n), True), (f"(mod {n})", False))


def _of_copies(experiment: Experiment) -> Levels:
    task = experiment.task_as(CorpusTaskConfig)
    found = copy_floors(validation_sequences(task, experiment.seed))
    return {
        N_("by the letter before alone"): found.bigram,
        N_("and copying back"): found.copying,
    }


def _copies(experiment: Experiment) -> Example:
    """Return a sequence, with each trigger marked between the letter and its copy."""
    task = experiment.task_as(CorpusTaskConfig)
    (letters,) = validation_sequences(task, experiment.seed, n=1)
    pieces: list[tuple[str, bool]] = []
    for t, letter in enumerate(letters):
        is_marked = letter in TRIGGERS or letters[t - 1 : t] in {(one,) for one in TRIGGERS}
        if pieces and pieces[-1][1] == is_marked:
            pieces[-1] = (pieces[-1][0] + letter, is_marked)
        else:
            pieces.append((letter, is_marked))
    return tuple(pieces)


def _of_labels(experiment: Experiment) -> Levels:
    """Return what is right of the training labels by guessing, and by knowing only true ones."""
    task = experiment.task_as(ImageTaskConfig)
    return {N_("guessing"): 1 / len(task.class_names), N_("true labels only"): 1 - task.label_noise}


def _labels(experiment: Experiment) -> Example:
    """Return the labels of a few training pictures; the wrong ones stand before the true ones."""
    names = experiment.task.class_names
    first = (kind[:_LABELS].tolist() for kind in labels(experiment))
    return tuple(
        (names[given] if given == true else f"{names[given]} ({names[true]})", given != true)
        for given, true in zip(*first, strict=True)
    )


_LABELS = 16  # of pictures


def _of_columns(experiment: Experiment) -> Levels:
    task = experiment.task_as(CorpusTaskConfig)
    found = column_sums.known(validation_sequences(task, experiment.seed))
    return {
        N_("guessing"): 1 / column_sums.BASE,
        N_("no carries"): found.no_carry,
        N_("carries of one column alone"): found.one_column,
        N_("every bit"): 1.0,
    }


_COLUMNS = 5  # of an example


def _column_sum(experiment: Experiment) -> Example:
    """Return a sum as two numbers, and its first columns with the bits of the sum marked."""
    task = experiment.task_as(CorpusTaskConfig)
    (tokens,) = validation_sequences(task, experiment.seed, n=1)
    a, b, total = column_sums.numbers(tokens)
    width = column_sums.WIDTH
    pieces = [(f"{a} + {b} = {total}:", False)]
    for start in range(0, _COLUMNS * width, width):
        *read, written = tokens[start : start + width]
        pieces += [(" ".join(read), False), (written, True), ("·", False)]
    return (*pieces[:-1], ("…", False))


_ONE_LAYER = Arm("one-layer", N_("one layer"), {"model.n_layers": 1})
INDUCTION = Phenomenon(
    name="induction",
    title=N_("Induction heads"),
    base=PRESETS["induction"].experiment,
    arms=(
        Arm("two-layers", N_("two layers")),
        _ONE_LAYER,
        Arm(
            "fixed",
            N_("one layer, fixed distance"),
            {"model.n_layers": 1, "task.name": "fixed-repeats"},
        ),
    ),
    metrics=("validation-accuracy",),
    question=choice_question(
        Paragraph("discover/induction-question"),
        N_("only two layers"),
        {
            N_("one layer, too"): Paragraph("discover/induction-one-layer"),
            N_("neither: the letters are random"): N_("The repeat is not: all of it came before."),
        },
        Paragraph("discover/induction-because"),
    ),
    paper="Olsson et al. 2022",
    address="https://arxiv.org/abs/2209.11895",
    levels=_of_repeats,
    example=_repeat,
)
CHAINS = Phenomenon(
    name="chains",
    title=N_("Markov chains in context"),
    base=PRESETS["chains"].experiment,
    arms=(Arm("two-layers", N_("two layers")), _ONE_LAYER),
    metrics=("validation-loss",),
    question=choice_question(
        Paragraph("discover/chains-question"),
        N_("in steps: first letters, then pairs"),
        {
            N_("evenly, from the first step on"): Paragraph("discover/chains-even"),
            N_("not at all: each chain is new"): Paragraph("discover/chains-new"),
        },
        Paragraph("discover/chains-because"),
    ),
    paper="Edelman et al. 2024",
    address="https://arxiv.org/abs/2402.11004",
    levels=_of_chains,
    example=_chain,
)
GROKKING = Phenomenon(
    name="grokking",
    title=N_("Grokking"),
    base=PRESETS["grokking"].experiment,
    arms=(
        Arm("decay", N_("weight decay")),
        Arm("no-decay", N_("no weight decay"), {"training.weight_decay": 0.0}),
    ),
    metrics=("validation-accuracy", "accuracy"),
    question=choice_question(
        Paragraph("discover/grokking-question"),
        N_("long after the trained ones"),
        {
            N_("together with the trained ones"): Paragraph("discover/grokking-with"),
            N_("never: it has only remembered"): Paragraph("discover/grokking-never"),
        },
        Paragraph("discover/grokking-because"),
    ),
    paper="Power et al. 2022, Nanda et al. 2023",
    address="https://arxiv.org/abs/2301.05217",
    levels=_of_sums,
    example=_sum,
)
MEMORISING = Phenomenon(
    name="memorising",
    title=N_("Wrong labels"),
    base=PRESETS["memorising"].experiment,
    arms=(
        Arm("noisy", N_("wrong labels")),
        Arm("clean", N_("right labels"), {"task.label_noise": 0.0}),
    ),
    metrics=("accuracy", "validation-accuracy"),
    question=choice_question(
        Paragraph("discover/memorising-question"),
        N_("rises, then falls"),
        {
            N_("rises to the end"): Paragraph("discover/memorising-rises"),
            N_("stays at chance"): Paragraph("discover/memorising-chance"),
        },
        Paragraph("discover/memorising-because"),
    ),
    paper="Zhang et al. 2016, Nakkiran et al. 2019",
    address="https://arxiv.org/abs/1912.02292",
    levels=_of_labels,
    example=_labels,
)
WIDTHS = (8, 12, 16, 24, 32, 64, 96)
"""Of the models that are trained for double descent; one of them is that of the preset."""
BY_WIDTH = Trial(
    name="double-descent",
    title=N_("Double descent"),
    base=MEMORISING.base,
    arms=tuple(
        Arm(
            str(width),
            N_("d_model {width}", width=width),
            {"model.d_model": width, "model.d_ff": 2 * width},
        )
        for width in WIDTHS
    ),
)
SINKS = Phenomenon(
    name="sinks",
    title=N_("Attention sinks"),
    base=PRESETS["sinks"].experiment,
    arms=(
        Arm("softmax", N_("softmax")),
        Arm("zero", N_("softmax with a zero logit"), {"model.sink": "zero"}),
    ),
    metrics=("validation-loss",),
    question=choice_question(
        Paragraph("discover/sinks-question"),
        N_("to the first token"),
        {
            N_("to all letters alike"): Paragraph("discover/sinks-even"),
            N_("to the letter before, too"): Paragraph("discover/sinks-before"),
        },
        Paragraph("discover/sinks-because"),
    ),
    paper="Xiao et al. 2023, Guo et al. 2024, Miller 2023",
    address="https://arxiv.org/abs/2309.17453",
    levels=_of_copies,
    example=_copies,
)
ORDER = Phenomenon(
    name="specialise",
    title=N_("Heads take their roles"),
    base=INDUCTION.base,  # so the runs of that finding are these
    arms=(INDUCTION.arm("two-layers"), INDUCTION.arm("one-layer")),
    metrics=("validation-accuracy",),
    question=choice_question(
        Paragraph("discover/specialise-question"),
        N_("together, within a few steps"),
        {
            N_("“previous token” long before"): Paragraph("discover/specialise-previous"),
            N_("“induction” long before"): Paragraph("discover/specialise-induction"),
        },
        Paragraph("discover/specialise-because"),
    ),
    paper="Olsson et al. 2022, Voita et al. 2019",
    address="https://arxiv.org/abs/2209.11895",
    levels=_of_repeats,
    example=_repeat,
)
_NARROW = {"model.d_model": 4, "model.n_heads": 2}
ADDER = Phenomenon(
    name="adder",
    title=N_("The smallest adder"),
    base=PRESETS["adder"].experiment,
    arms=(
        Arm("adder", N_("the adder")),
        Arm("smaller", N_("a quarter of it"), {**_NARROW, "model.d_ff": 2}),
        Arm("fewer", N_("one neuron fewer"), {**_NARROW, "model.d_ff": 1}),
        Arm("blind", N_("one column in sight"), {"model.window": 1}),
    ),
    metrics=("validation-accuracy",),
    question=choice_question(
        Paragraph("discover/adder-question"),
        N_("about 500"),
        {
            N_("about 50,000"): Paragraph("discover/adder-many"),
            N_("about 5,000"): Paragraph("discover/adder-many"),
        },
        Paragraph("discover/adder-because"),
    ),
    paper="Quirke & Barez 2023",
    address="https://arxiv.org/abs/2310.13121",
    levels=_of_columns,
    example=_column_sum,
)
PHENOMENA: Mapping[str, Phenomenon] = {
    one.name: one for one in (INDUCTION, CHAINS, GROKKING, ADDER, SINKS, ORDER, MEMORISING)
}
"""By the name of their page."""
