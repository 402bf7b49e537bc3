"""What peers learn in the same CPU-seconds as our presets, from the same data.

Each is built as its makers draw it, in the sizes of ``peer_vits`` and ``peer_translator``, and
trained as is usual: AdamW, a short warm-up, a cosine to zero that ends with the seconds, gradients
clipped to 1. Its batches, augmented as ours, come from memory, and neither validation nor test
counts in its seconds. Its learning rate is chosen beforehand by validation, with a seed of those
that ours was tuned with and the fewest of the seconds.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks import peer_translator, peer_vits
from benchmarks.beginner_vit import LoopedViT
from benchmarks.goals import GOALS, TUNING_SEEDS, goal_cell
from benchmarks.report import Figure, Table
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.presets import PRESETS
from tfm_core.training.loop import Trainer, build

WARMUP, CLIP, WEIGHT_DECAY = 0.05, 1.0, 0.05
N_LAYERS = 2


@dataclass(frozen=True, slots=True)
class Learner:
    """A peer that learns. make: a model as its makers draw it, for the data of a trainer.

    learning_rates: those among which validation chooses.
    """

    name: str
    make: Callable[[Trainer], nn.Module]
    learning_rates: tuple[float, ...] = (0.001, 0.002, 0.004, 0.008)


@dataclass(frozen=True, slots=True)
class Race:
    """Peers beside a preset.

    goals: by the CPU-seconds that peers are given, the goal of ours and that of being ahead.
    """

    preset: str
    goals: Mapping[float, tuple[str, str]]
    batch_size: int
    learners: tuple[Learner, ...]

    def names(self) -> set[str]:
        """Return the goals that say whether ours is ahead."""
        return {beside for _ours, beside in self.goals.values()}


def _vit(name: str) -> Callable[[Trainer], nn.Module]:
    return lambda trainer: peer_vits.build(name, N_LAYERS)


def _translator(trainer: Trainer) -> nn.Module:
    assert isinstance(trainer.model, peer_translator.EncoderDecoder)
    return peer_translator.TorchTranslator(trainer.model)


RACES: tuple[Race, ...] = (
    Race(
        "translate",
        {
            4: ("translate, soon", "translate, soon, beside peers"),
            10: ("translate", "translate beside peers"),
        },
        64,
        (Learner("nn.Transformer", _translator),),
    ),
    Race(
        "vit-mnist",
        {
            12: ("vit-mnist, soon", "vit-mnist, soon, beside peers"),
            60: ("vit-mnist", "vit-mnist beside peers"),
        },
        128,
        (
            Learner("timm", _vit("timm")),
            Learner("vit-pytorch", _vit("vit-pytorch")),
            Learner("Hugging Face transformers", _vit("Hugging Face transformers")),
            Learner("a beginner's loops", lambda trainer: LoopedViT(), (0.003, 0.01, 0.03)),
        ),
    ),
)


def installed(race: Race) -> list[Learner]:
    """Return those whose packages are installed."""
    known = peer_vits.PEERS
    return [
        one for one in race.learners if one.name not in known or peer_vits.is_installed(one.name)
    ]


def tables(
    race: Race, ours: Mapping[str, Figure], *, seeds: Sequence[int], quick: bool
) -> Iterator[Table]:
    """Train every peer for each of the seconds; ours: what was reached for the goals of ours."""
    fewest = 0.5 if quick else min(race.goals)
    rates = {one.name: chosen_rate(race, one, seconds=fewest) for one in installed(race)}
    for seconds, (goal, beside) in race.goals.items():
        given = fewest if quick else seconds
        reached = {
            one.name: [
                _score(race, one, rates[one.name], seconds=given, seed=seed) for seed in seeds
            ]
            for one in installed(race)
        }
        rows = [
            [
                f"ours, the goal {goal}",
                "",
                f"{ours[goal].seconds:.1f}",
                f"{ours[goal].value:.2f} %",
                "",
            ]
        ]
        best = max(statistics.mean(score for score, _steps in found) for found in reached.values())
        ahead = ours[goal].value - best
        rows[0][-1] = goal_cell(beside, ahead)
        for name, found in reached.items():
            scores, steps = zip(*found, strict=True)
            spread = f"{statistics.mean(scores):.2f} % ({min(scores):.2f} to {max(scores):.2f})"
            name = f"{name}, rate {rates[name]:g}"
            rows.append([name, f"{statistics.mean(steps):,.0f}", f"{given:g}", spread, ""])
        yield Table(
            f"{race.preset}: peers after {given:g} CPU-seconds, {GOALS[goal].what}",
            ["", "steps", "CPU-seconds", "reached", "ahead by, points"],
            rows,
            [
                f"Mean of {len(seeds)} seed{'s' * (len(seeds) > 1)} (worst to best).",
                "Peers: AdamW, cosine to zero, the same pictures or sentences, weights as their",
                "makers draw them; measuring is not counted.",
            ],
            {beside: Figure(ahead, seeds=ours[goal].seeds)},
        )


def chosen_rate(race: Race, learner: Learner, *, seconds: float) -> float:
    """Return the learning rate with which a peer is best on validation."""
    found = {
        rate: _score(
            race, learner, rate, seconds=seconds, seed=TUNING_SEEDS[0], split="validation"
        )[0]
        for rate in learner.learning_rates
    }
    return max(found, key=found.__getitem__)


def _score(
    race: Race, learner: Learner, rate: float, *, seconds: float, seed: int, split: str = "test"
) -> tuple[float, int]:
    """Return the per cent of a split that are right, and the steps that were made."""
    trainer = trainer_for(race, seed)
    torch.manual_seed(seed)
    model = learner.make(trainer)
    steps = learn(model, trainer, rate, seconds=seconds)
    return measured(model, trainer, split), steps


def trainer_for(race: Race, seed: int) -> Trainer:
    """Return a trainer with the data, batches and loss of a preset, for another model."""
    base = PRESETS[race.preset].experiment
    usual = default_sections(base.model.family, base.task.name)["model"]
    # the data is the preset's; a peer has the sizes that a preset has by default
    return build(base.replace(seed=seed, model=usual, training={"batch_size": race.batch_size}))


def measured(model: nn.Module, trainer: Trainer, split: str) -> float:
    """Return the per cent of a split's pictures, or of its whole sequences, that are right."""
    model.eval()
    with torch.inference_mode():
        _loss, accuracy, whole = trainer.objective.measure(model, split)
    return 100 * (accuracy if whole is None else whole)


def learn(
    model: nn.Module,
    trainer: Trainer,
    learning_rate: float,
    *,
    seconds: float,
    clock: Callable[[], float] = time.process_time,
) -> int:
    """Train for so many seconds of the clock, at a peak rate; return the number of steps."""
    parameters = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(parameters, weight_decay=WEIGHT_DECAY, fused=True)
    generator = torch.Generator().manual_seed(trainer.experiment.seed)
    model.train()
    begin, step = clock(), 0
    while (share := (clock() - begin) / seconds) < 1:
        step += 1
        rate = learning_rate * min(1.0, (share + 1e-3) / WARMUP)
        for group in optimizer.param_groups:
            group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * share))
        metrics = trainer.objective.loss_and_metrics(model, trainer.batch_indices(step), generator)
        optimizer.zero_grad(set_to_none=True)
        metrics.loss.backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
    return step
