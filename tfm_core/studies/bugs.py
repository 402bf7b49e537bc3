"""A healthy run and its twin with one hidden mistake: probes of both, and a guess.

Probes run the trained models, or the untrained ones, which share a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from tfm_core.choices.config import ConfigError, Experiment, TextTaskConfig
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, joined
from tfm_core.studies.study import Arm, changed
from tfm_core.trace.source.file import source_code

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug(Arm):
    """An arm with a mistake in the code, of ``tfm_core.choices.mistakes``, or in the settings.

    level: 1 is obvious, 3 subtle. probe: the one that finds it. means: its effect.
    """

    level: int
    probe: str
    means: str


def _in_code(name: str, level: int) -> Bug:
    """Return a mistake in the code, by its name in ``MISTAKES``."""
    mistake = MISTAKES[name]
    assert mistake.probe is not None
    return Bug(
        name=name,
        label=mistake.label,
        level=level,
        changes=mistake.settings,
        probe=mistake.probe,
        means=mistake.help,
    )


_BUGS = (
    _in_code("no-causal-mask", 1),
    _in_code("mask-transposed", 1),
    Bug(
        name="no-positions",
        label=N_("No positions"),
        level=1,
        changes={"model.position": "none"},
        probe="order",
        means=Paragraph("bugs/no-positions"),
    ),
    Bug(
        name="rate-too-high",
        label=N_("Learning rate ten times too high"),
        level=1,
        changes={"training.learning_rate": lambda right: 10 * right},
        probe="rate",
        means=N_("Every step was ten times too long."),
    ),
    _in_code("softmax-before-loss", 1),
    _in_code("argmax-before-loss", 1),
    _in_code("target-not-shifted", 1),
    _in_code("no-residuals", 2),
    Bug(
        name="no-norm",
        label=N_("No LayerNorm"),
        level=2,
        changes={"model.norm": "none"},
        probe="numbers",
        means=N_("Nothing limited the size of the vectors."),
    ),
    _in_code("no-scale", 2),
    Bug(
        name="one-head",
        label=N_("One head instead of several"),
        level=2,
        changes={"model.n_heads": 1},
        probe="attention",
        means=Paragraph("bugs/one-head"),
    ),
    Bug(
        name="no-warm-up",
        label=N_("No learning rate warm-up"),
        level=3,
        changes={"training.warmup": 0.0},
        probe="rate",
        means=Paragraph("bugs/no-warm-up"),
    ),
    _in_code("scaled-by-d-model", 3),
    _in_code("shared-norm", 3),
    _in_code("no-output-projection", 3),
    _in_code("sliced-heads", 3),
    _in_code("residual-from-normed", 3),
)
BUGS: dict[str, Bug] = {bug.name: bug for bug in _BUGS}


@cache
def basis() -> Experiment:
    """Return what a healthy run learns: to reverse letters, in some seconds, with two layers."""
    experiment = PRESETS["reverse"].experiment
    training = experiment.trained.replace(steps=400, snapshots=8, validate_every=50)
    model = experiment.model.model_dump() | {"n_encoder_layers": 2, "n_decoder_layers": 2}
    return experiment.replace(model=model, training=training.model_dump())


def _twin(healthy: Experiment, bug: Bug) -> Experiment | None:
    """Return an experiment with a mistake; None where its family has no such setting."""
    try:
        return changed(healthy, bug.changes)
    except ConfigError:
        return None


def bug_of(healthy: Experiment, twin: Experiment) -> Bug | None:
    """Return the mistake in which a twin differs from a healthy run; None where it is none."""
    if healthy == twin:
        return None
    return next((bug for bug in _BUGS if _twin(healthy, bug) == twin), None)


def possible(healthy: Experiment) -> list[Bug]:
    """Return the mistakes that a twin of a healthy run can have."""
    return [bug for bug in _BUGS if _twin(healthy, bug) not in (None, healthy)]


N_EXAMPLES = 64
NOTHING = 1e-5
"""Changes below this are rounding."""
MAX_RATIO = 1.25
"""Measurements with a larger ratio differ."""
Measured = Mapping[str, float]
"""What a probe measured, by its label."""


class ProbedModel:
    """A model to measure: a run's, or the untrained one of an experiment."""

    def __init__(self, experiment: Experiment, run: Run | None = None) -> None:
        """run: of this experiment, with a checkpoint."""
        self.experiment, self._run = experiment, run

    @cached_property
    def new(self) -> Any:
        """The model as it was before the first step."""
        from tfm_core.training.setup import new_model

        return new_model(self.experiment).eval()

    @property
    def trained(self) -> Any:
        """The model as its training left it; without a run, the new one."""
        return self.new if self._run is None else model_of(self._run)[0]

    def examples(self, split: str = "validation") -> tuple[Tensor, Tensor]:
        """Return sources (B, S) and targets (B, T), which begin with <bos>, as long as all are."""
        from tfm_core.data.moving import data_as
        from tfm_core.data.text_data import TextData
        from tfm_core.data.vocabulary import PAD

        data = data_as(data_of(self.experiment), TextData)
        part = data.validation if split == "validation" else data.train
        src, tgt = part.src[:N_EXAMPLES], part.tgt[:N_EXAMPLES]
        src_len, tgt_len = int((src != PAD).sum(1).max()), int((tgt != PAD).sum(1).max())
        return src[:, :src_len], tgt[:, :tgt_len]


@dataclass(frozen=True, slots=True)
class BugProbe:
    """A question to both models.

    healthy: the answer of a correct model. is_share: measured in per cent.
    """

    question: str
    healthy: str
    measure: Callable[[ProbedModel], Measured]
    is_share: bool = False

    def format(self, value: float) -> str:
        """Return a measurement as it is shown."""
        if self.is_share:
            return f"{100 * value:.1f}%"
        if value >= 1000 or (value >= 1 and value == int(value)):
            return f"{value:,.0f}"
        return f"{value:.3g}"


def ratio(one: float, other: float) -> float:
    """Return how many times the smaller measurement the larger one is."""
    small, large = sorted((abs(one), abs(other)))
    return large / max(small, 1e-9)


def differs(one: float, other: float) -> bool:
    """Return whether two measurements differ by more than noise."""
    if max(abs(one), abs(other)) < NOTHING:
        return False
    return min(abs(one), abs(other)) < NOTHING or ratio(one, other) > MAX_RATIO


def sight(subject: ProbedModel) -> Measured:
    """Change one target token, and measure which earlier and later logits change."""
    import torch

    src, tgt = subject.examples()
    given = tgt[:, :-1]
    at = given.size(1) // 2
    changed = given.clone()
    changed[:, at] = torch.where(given[:, at] == given[:, at - 1], given[:, 1], given[:, at - 1])
    model = subject.trained
    with torch.no_grad():
        change = (model(src, given) - model(src, changed)).abs().amax((0, 2))
    return {
        N_("largest change of a logit before the changed token"): _rounded(change[:at].max()),
        N_("largest change of a logit from the changed token on"): _rounded(change[at + 1 :].max()),
    }


def order(subject: ProbedModel) -> Measured:
    """Swap the first two tokens of each source, and see whether the first answer changes."""
    import torch

    src, tgt = subject.examples()
    swapped = src.clone()
    swapped[:, [0, 1]] = src[:, [1, 0]]
    model, first = subject.trained, tgt[:, :1]
    with torch.no_grad():
        before, after = (model(one, first)[:, 0].softmax(-1) for one in (src, swapped))
    change = (before - after).abs().amax(-1)
    return {N_("largest change of a probability"): _rounded(change.max())}


def gradients(subject: ProbedModel) -> Measured:
    """Take the gradient of the first batch on the new model, layer by layer."""
    import torch

    from tfm_core.training.losses import labels_of
    from tfm_core.training.objectives import token_metrics
    from tfm_core.training.optimisation import gradient_norms

    torch.set_num_threads(1)
    src, tgt = subject.examples("train")
    model, training = subject.new, subject.experiment.trained
    model.zero_grad(set_to_none=True)
    metrics = token_metrics(
        model(src, tgt[:, :-1]),
        labels_of(tgt, training.mistakes),
        training.label_smoothing,
        mistakes=training.mistakes,
    )
    metrics.loss.backward()  # type: ignore[no-untyped-call]
    for parameter in model.parameters():
        if parameter.grad is None:  # a part that the loss does not reach
            parameter.grad = torch.zeros_like(parameter)
    norms = gradient_norms(model, 0.0, None)
    model.zero_grad(set_to_none=True)
    return {N_("gradient norm of {part}", part=part): norm for part, norm in norms.items()}


def attention(subject: ProbedModel) -> Measured:
    """Look at the rows of the new model's attention: their sums, and how far scores spread."""
    import torch

    from tfm_core.probe.capture import capture

    src, tgt = subject.examples()
    model = subject.new
    with capture(model, only={"weights"}) as cache:
        model(src, tgt[:, :-1])
    maps = cache.of("weights")
    sums = torch.cat([weights.sum(-1).flatten() for weights in maps.values()])
    full = maps["encoder.layers.0.self_attention"]  # nothing of it is masked but padding
    scores = full.clamp_min(1e-12).log()
    spread = scores.masked_fill(full == 0, float("nan"))
    deviation = ((spread - spread.nanmean(-1, keepdim=True)) ** 2).nanmean(-1).sqrt()
    return {
        N_("smallest row sum over its keys"): float(sums[sums > 0].min()),
        N_("largest row sum over its keys"): float(sums.max()),
        N_("maps per layer"): float(full.size(1)),
        N_("standard deviation of the scores in a row"): float(deviation.nanmean()),
        N_("mean of the largest weight in a row"): float(full.amax(-1).mean()),
    }


def growth(subject: ProbedModel) -> Measured:
    """Follow the size of the vectors through the new model, block by block."""
    from tfm_core.probe.capture import capture

    src, tgt = subject.examples()
    model = subject.new
    with capture(model, only={"residual"}) as cache:
        model(src, tgt[:, :-1])
    return {
        N_("vector size after {part}", part=name): float(residual.square().mean().sqrt())
        for name, residual in cache.of("residual").items()
    }


def running(subject: ProbedModel) -> Measured:
    """Let the trained model answer given the true tokens so far, and generate."""
    import torch

    from tfm_core.data.vocabulary import PAD
    from tfm_core.decoding import greedy

    src, tgt = subject.examples()
    model, truth = subject.trained, tgt[:, 1:]
    real = truth != PAD
    with torch.no_grad():
        forced = model(src, tgt[:, :-1]).argmax(-1)
    alone = torch.full_like(truth, PAD)
    ids = greedy(model, src, max_len=truth.size(1)).ids
    alone[:, : ids.size(1)] = ids
    shares = [float(((answer == truth) & real).sum() / real.sum()) for answer in (forced, alone)]
    return {
        N_("tokens right, given the true ones"): shares[0],
        N_("tokens right, given its own"): shares[1],
    }


def mixing(subject: ProbedModel) -> Measured:
    """Change a slice of a vector and one head's output, and see what that reaches."""
    import torch

    part = subject.new.encoder.layers[0].self_attention
    width, heads = part.d_model, part.n_heads
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 2, width, generator=generator)
    changed = x.clone()
    changed[..., : width // heads] += 1.0
    before = torch.zeros(1, 2, part.widths[0])
    after = before.clone()
    after[..., : part.d_head] += 1.0
    with torch.no_grad():
        queries = [part.project(one)[0] for one in (x, changed)]  # (1, H, 2, D)
        reached = (queries[0] - queries[1]).abs().amax((0, 2, 3)) > NOTHING
        merged = [part.out_projection(one) for one in (before, after)]
        hears = (merged[0] - merged[1]).abs().amax((0, 1)) > NOTHING
    return {
        N_("share of heads that read the first head's slice"): float(reached.float().mean()),
        N_("share of dimensions that the first head writes to"): float(hears.float().mean()),
    }


def numbers(subject: ProbedModel) -> Measured:
    """Count the parameters, part by part."""
    counts = dict.fromkeys(("attention", "norms", "feed-forward", "the rest"), 0)
    for name, parameter in subject.new.named_parameters():
        kind = "the rest"
        if "norm" in name:
            kind = "norms"
        elif "attention" in name:
            kind = "attention"
        elif "feed_forward" in name:
            kind = "feed-forward"
        counts[kind] += parameter.numel()
    labels = {
        "attention": N_("parameters of attention"),
        "norms": N_("parameters of norms"),
        "feed-forward": N_("parameters of feed-forward layers"),
        "the rest": N_("other parameters"),
    }
    return {labels[kind]: float(n) for kind, n in counts.items()}


def rate(subject: ProbedModel) -> Measured:
    """Read how long the optimiser's steps were."""
    training = subject.experiment.trained
    early = max(2, round(0.05 * training.steps))
    middle = training.steps // 2
    return {
        N_("learning rate at step {n}", n=step): training.rate(step)
        for step in (1, early, middle, training.steps)
    }


PROBES: dict[str, BugProbe] = {
    "sight": BugProbe(
        N_("Does a future token change a past logit?"), Paragraph("bugs/sight"), sight
    ),
    "order": BugProbe(
        N_("Does swapping two tokens change the answer?"),
        N_("If the model knows positions, the answer changes."),
        order,
    ),
    "gradients": BugProbe(
        N_("How large is the gradient in each layer?"), Paragraph("bugs/gradients"), gradients
    ),
    "attention": BugProbe(
        N_("Do rows sum to 1, and how sharp are they?"), Paragraph("bugs/attention"), attention
    ),
    "growth": BugProbe(
        N_("Does the scale of activations grow with depth?"), Paragraph("bugs/growth"), growth
    ),
    "running": BugProbe(
        N_("Does it generate as well as with the true tokens?"),
        N_("A model that learned its task generates nearly as well."),
        running,
        is_share=True,
    ),
    "mixing": BugProbe(
        N_("What does each head read and write?"),
        N_("Every head reads the whole vector and writes to all of it."),
        mixing,
        is_share=True,
    ),
    "numbers": BugProbe(
        N_("How many parameters are there, and where?"),
        N_("Models of the same shape have as many parameters."),
        numbers,
    ),
    "rate": BugProbe(
        N_("How large are the optimiser's steps?"),
        N_("A correct learning rate starts near 0, warms up and falls."),
        rate,
    ),
}


def can_probe(experiment: Experiment) -> bool:
    """Return whether the probes know how to ask a model: a Transformer from text to text."""
    is_text = isinstance(experiment.task, TextTaskConfig)
    return experiment.model.family == "encoder-decoder" and is_text


def _rounded(change: Tensor) -> float:
    value = float(change)
    return 0.0 if value < NOTHING else value


ComparedMeasurement = tuple[str, str, str, bool]
"""What was measured, of the healthy model, of its twin, and whether these differ."""


def measure_pair(healthy: Run, twin: Run, name: str) -> tuple[ComparedMeasurement, ...]:
    """Measure a run and its twin with a probe. Raises StudentError without a checkpoint."""
    probe = PROBES[name]
    one, other = (probe.measure(ProbedModel(run.experiment, run)) for run in (healthy, twin))
    return tuple(
        (label, probe.format(right), probe.format(wrong), differs(right, wrong))
        for label, right, wrong in paired(one, other)
    )


def paired(one: Measured, other: Measured) -> list[tuple[str, float, float]]:
    """Return what was measured of both with its label; a part that one of them lacks has 0."""
    labels = dict.fromkeys([*one, *other])
    return [(label, one.get(label, 0.0), other.get(label, 0.0)) for label in labels]


def hint(healthy: Experiment, twin: Experiment, guess: Bug, used: Collection[str] = ()) -> str:
    """Return a hint: what a wrong guess would measure and the twin does not, before training.

    It does not name the twin's mistake. used: probes already used, which are the last choice.
    """
    supposed, found = ProbedModel(changed(healthy, guess.changes)), ProbedModel(twin)
    names = [guess.probe, *(name for name in PROBES if name != guess.probe)]
    for name in sorted(names, key=lambda name: name in used):  # stable: unused ones first
        probe = PROBES[name]
        differing = [
            row
            for row in paired(probe.measure(supposed), probe.measure(found))
            if differs(*row[1:])
        ]
        if differing:
            label, expected, measured = max(differing, key=lambda row: ratio(*row[1:]))
            values: dict[str, Any] = {
                "label": label,
                "expected": probe.format(expected),
                "measured": probe.format(measured),
            }
            ask = (
                N_("Look again at “{question}”.", question=probe.question)
                if name in used
                else N_("Ask “{question}”.", question=probe.question)
            )
            return joined(ask, Paragraph("bugs/hint", **values))
    return Paragraph("bugs/no-probe")


def difference(healthy: Experiment, twin: Experiment) -> str:
    """Return what differs between the generated code of both, as a unified diff."""
    right, wrong = (_code(experiment).splitlines() for experiment in (healthy, twin))
    lines = unified_diff(right, wrong, "healthy.py", "twin.py", n=3, lineterm="")
    return "\n".join(lines)


def _code(experiment: Experiment) -> str:
    """Return the generated file of the model, and its training settings."""
    training = experiment.trained
    mistakes = [MISTAKES[name] for name in training.mistakes]
    given = next((one.loss_code for one in mistakes if one.loss_code), "logits")
    labels = next((one.labels_code for one in mistakes if one.labels_code), "tgt[:, 1:]")
    return "\n".join(
        [
            source_code(experiment.model, data_shape(experiment)),
            "# training",
            f"learning_rate = {training.learning_rate:g}",
            f"warm_up_steps = {round(training.warmup * training.steps)}",
            f"targets = {labels}",
            f"loss = F.cross_entropy({given}.flatten(0, 1), targets.flatten(), ignore_index=PAD)",
        ]
    )
