"""Optimisers are their own classes, decay pulls on matrices only, schedules rise and fall."""

import pytest
import torch
from torch import nn

from tfm_core.choices.config import TrainingConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.optimisers import OPTIMISERS
from tfm_core.choices.variants.record import UnknownVariant, resolve
from tfm_core.choices.variants.schedules import SCHEDULES
from tfm_core.trace.update import ARITHMETIC
from tfm_core.training.events import Measured
from tfm_core.training.loop import build, train
from tfm_core.training.optimisation import make_optimizer
from tfm_core.training.setup import new_model


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(7, 5), nn.LayerNorm(5), nn.Linear(5, 3))


def test_optimisers_are_those_of_their_records_and_rates_rise():
    for name in OPTIMISERS:
        made = make_optimizer(model(), TrainingConfig(optimizer=name))
        assert type(made) is resolve(OPTIMISERS[name].torch_class)
    config = TrainingConfig().model_copy(update={"optimizer": "spiral"})
    with pytest.raises(
        UnknownVariant, match="There is no optimiser named 'spiral'; there are adamw"
    ):
        make_optimizer(model(), config)
    for name in SCHEDULES:
        config = TrainingConfig(schedule=name, steps=100, warmup=0.1, learning_rate=0.5)
        rates = [config.rate(step) for step in range(1, 101)]
        assert rates[9] == pytest.approx(0.5) == max(rates)
        assert rates[:10] == pytest.approx([0.05 * step for step in range(1, 11)])
        assert min(rates) > 0  # the last step still moves a little
        assert rates[10:] == sorted(rates[10:], reverse=True)
    for name in SCHEDULES:
        config = TrainingConfig(schedule=name, steps=100, warmup=0.0, learning_rate=0.5)
        assert config.rate(1) == pytest.approx(0.5)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_weight_decay_pulls_on_matrices_and_a_recorded_step_is_torchs(name, gradients):
    embedding, norm, linear = own = model()
    optimizer = make_optimizer(own, TrainingConfig(optimizer=name, weight_decay=0.3))
    decay = {
        id(parameter): group["weight_decay"]
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    assert decay[id(linear.weight)] == 0.3
    rest = [embedding.weight, norm.weight, norm.bias, linear.bias]
    assert [decay[id(parameter)] for parameter in rest] == [0.0] * 4
    assert len(decay) == 5
    by_torch, by_hand, memory = stepped(name, gradients)
    torch.testing.assert_close(by_hand, by_torch, rtol=1e-9, atol=1e-12)
    kept = {key for key, value in memory.items() if value is not None and value.dim()}
    assert kept == set(OPTIMISERS[name].memory)
    assert OPTIMISERS[name].numbers(7, 7) == 7 * len(kept)


@pytest.mark.parametrize("name", ["vit-digits", "addition", "captions", "translate-luong"])
def test_what_is_looked_up_or_added_is_not_decayed(name):
    """Position tables, embeddings and the CLS token keep their size; what multiplies does not."""
    experiment = PRESETS[name].experiment
    if name == "captions":
        experiment = experiment.replace(
            model=experiment.model.replace(mistakes="sliced-heads").model_dump()
        )
    if name == "vit-digits":
        experiment = experiment.replace(
            model=experiment.model.replace(pooling="cls", stem="conv").model_dump()
        )
    own = new_model(experiment)
    groups = make_optimizer(own, experiment.training).param_groups
    decays = {id(one): group["weight_decay"] > 0 for group in groups for one in group["params"]}
    tables = {"cls", "positions.table", "tgt_positions.table"}
    for parameter, weight in own.named_parameters():
        is_table = parameter in tables or "embedding" in parameter
        assert decays[id(weight)] is (weight.ndim > 1 and not is_table), parameter


@pytest.mark.wide
def test_adam_reaches_what_adamw_reaches():
    """With the decay that suits AdamW it would get no sequence right: 26% of the letters."""
    experiment = PRESETS["copy"].experiment
    training = experiment.training.replace(steps=300, optimizer="adam")
    events = train(build(experiment.replace(training=training.model_dump())))
    last = [event for event in events if isinstance(event, Measured)][-1]
    assert last.sequence_accuracy > 0.97  # AdamW: 99.9%


def stepped(name, gradients, **settings):
    """A weight matrix after a step for each gradient, by torch and by hand, and torch's state."""
    config = TrainingConfig(optimizer=name, weight_decay=0.3, beta1=0.7, beta2=0.8, **settings)
    torch.manual_seed(1)
    layer = nn.Linear(5, 3, bias=False, dtype=torch.float64)
    optimizer = make_optimizer(layer, config)
    (group,) = optimizer.param_groups
    by_hand, memory = layer.weight.detach().clone(), {}
    for gradient in gradients:
        layer.weight.grad = gradient.clone()
        _lines, by_hand = ARITHMETIC[name][0](by_hand, gradient, memory, group)
        optimizer.step()
        memory = {key: value.clone() for key, value in optimizer.state[layer.weight].items()}
    return layer.weight.detach(), by_hand, memory


@pytest.fixture
def gradients():
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(3, 5, generator=generator, dtype=torch.float64) for _ in range(3)]
