"""What can be measured on a run and on its twin to find the mistake.

Probes run the trained models, or the untrained ones, which share a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tfm_core.choices.config import Experiment, TextTaskConfig
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph

if TYPE_CHECKING:
    from torch import Tensor

N_EXAMPLES = 64
NOTHING = 1e-5
"""Changes below this are rounding."""
APART = 1.25
"""Measurements with a larger ratio differ."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number that a probe measured. is_share: shown in per cent."""

    label: str
    value: float
    is_share: bool = False


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
    """A question to both models. healthy: what the answer of a sound model is like."""

    name: str
    question: str
    healthy: str
    measure: Callable[[ProbedModel], tuple[Measurement, ...]]


def ratio(one: float, other: float) -> float:
    """Return how many times the smaller measurement the larger one is."""
    small, large = sorted((abs(one), abs(other)))
    return large / max(small, 1e-9)


def differs(one: float, other: float) -> bool:
    """Return whether two measurements differ by more than noise."""
    if max(abs(one), abs(other)) < NOTHING:
        return False
    return min(abs(one), abs(other)) < NOTHING or ratio(one, other) > APART


def sight(subject: ProbedModel) -> tuple[Measurement, ...]:
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
    return (
        Measurement(
            N_("largest change of a logit before the changed token"), _rounded(change[:at].max())
        ),
        Measurement(
            N_("largest change of a logit from the changed token on"),
            _rounded(change[at + 1 :].max()),
        ),
    )


def order(subject: ProbedModel) -> tuple[Measurement, ...]:
    """Swap the first two tokens of each source, and see whether the first answer changes."""
    import torch

    src, tgt = subject.examples()
    swapped = src.clone()
    swapped[:, [0, 1]] = src[:, [1, 0]]
    model, first = subject.trained, tgt[:, :1]
    with torch.no_grad():
        before, after = (model(one, first)[:, 0].softmax(-1) for one in (src, swapped))
    change = (before - after).abs().amax(-1)
    label = N_("largest change of a probability")
    return (Measurement(label, _rounded(change.max())),)


def gradients(subject: ProbedModel) -> tuple[Measurement, ...]:
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
    return tuple(
        Measurement(N_("gradient norm of {part}", part=part), norm) for part, norm in norms.items()
    )


def attention(subject: ProbedModel) -> tuple[Measurement, ...]:
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
    return (
        Measurement(N_("smallest row sum over its keys"), float(sums[sums > 0].min())),
        Measurement(N_("largest row sum over its keys"), float(sums.max())),
        Measurement(N_("maps per layer"), float(full.size(1))),
        Measurement(N_("standard deviation of the scores in a row"), float(deviation.nanmean())),
        Measurement(N_("mean of the largest weight in a row"), float(full.amax(-1).mean())),
    )


def growth(subject: ProbedModel) -> tuple[Measurement, ...]:
    """Follow the size of the vectors through the new model, block by block."""
    from tfm_core.probe.capture import capture

    src, tgt = subject.examples()
    model = subject.new
    with capture(model, only={"residual"}) as cache:
        model(src, tgt[:, :-1])
    return tuple(
        Measurement(
            N_("vector size after {part}", part=name), float(residual.square().mean().sqrt())
        )
        for name, residual in cache.of("residual").items()
    )


def running(subject: ProbedModel) -> tuple[Measurement, ...]:
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
    return (
        Measurement(N_("tokens right, given the true ones"), shares[0], is_share=True),
        Measurement(N_("tokens right, given its own"), shares[1], is_share=True),
    )


def mixing(subject: ProbedModel) -> tuple[Measurement, ...]:
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
    return (
        Measurement(
            N_("share of heads that read the first head's slice"),
            float(reached.float().mean()),
            is_share=True,
        ),
        Measurement(
            N_("share of dimensions that the first head writes to"),
            float(hears.float().mean()),
            is_share=True,
        ),
    )


def numbers(subject: ProbedModel) -> tuple[Measurement, ...]:
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
    return tuple(Measurement(labels[kind], float(n)) for kind, n in counts.items())


def rate(subject: ProbedModel) -> tuple[Measurement, ...]:
    """Read how long the optimiser's steps were."""
    training = subject.experiment.trained
    early = max(2, round(0.05 * training.steps))
    middle = training.steps // 2
    return tuple(
        Measurement(N_("learning rate at step {n}", n=step), training.rate(step))
        for step in (1, early, middle, training.steps)
    )


_PROBES = (
    BugProbe(
        "sight", N_("Does a future token change a past logit?"), Paragraph("bugs/sight"), sight
    ),
    BugProbe(
        "order",
        N_("Does swapping two tokens change the answer?"),
        N_("If the model knows positions, the answer changes."),
        order,
    ),
    BugProbe(
        "gradients",
        N_("How large is the gradient in each layer?"),
        Paragraph("bugs/gradients"),
        gradients,
    ),
    BugProbe(
        "attention",
        N_("Do rows sum to 1, and how sharp are they?"),
        Paragraph("bugs/attention"),
        attention,
    ),
    BugProbe(
        "growth",
        N_("Does the scale of activations grow with depth?"),
        Paragraph("bugs/growth"),
        growth,
    ),
    BugProbe(
        "running",
        N_("Is it as good alone as with the true tokens?"),
        N_("A model that learned its task is nearly as good alone."),
        running,
    ),
    BugProbe(
        "mixing",
        N_("What does each head read and write?"),
        N_("Every head reads the whole vector and writes to all of it."),
        mixing,
    ),
    BugProbe(
        "numbers",
        N_("How many parameters are there, and where?"),
        N_("Models of the same shape have equal counts."),
        numbers,
    ),
    BugProbe(
        "rate",
        N_("How large are the optimiser's steps?"),
        N_("A sound learning rate starts near 0, warms up and falls."),
        rate,
    ),
)
PROBES: dict[str, BugProbe] = {probe.name: probe for probe in _PROBES}


def can_probe(experiment: Experiment) -> bool:
    """Return whether the probes know how to ask a model: a Transformer from text to text."""
    is_text = isinstance(experiment.task, TextTaskConfig)
    return experiment.model.family == "encoder-decoder" and is_text


def _rounded(change: Tensor) -> float:
    value = float(change)
    return 0.0 if value < NOTHING else value
