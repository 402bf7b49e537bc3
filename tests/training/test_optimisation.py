"""Gradients and what the optimisers make of them."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.optim import AdamW
from torch.optim import Muon as MuonOfTorch

from tests.facts.test_memory import LABEL, model_of
from tests.training.test_loop import EXPERIMENTS, IDS, experiment
from tfm_core.anatomy import anatomy
from tfm_core.choices.config import MODEL_CONFIGS, TrainingConfig, tasks_for
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.record import UnknownVariant, resolve
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.training import OPTIMISERS, SCHEDULES
from tfm_core.data.tasks import data_shape
from tfm_core.trace.update import ARITHMETIC
from tfm_core.training import checkpoints
from tfm_core.training.events import Measured, Step, to_record
from tfm_core.training.loop import build, train
from tfm_core.training.muon import orthogonal_updates
from tfm_core.training.optimisation import gradient_norms, hidden_matrices, make_optimizer
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


@pytest.mark.parametrize("limit", [None, 0.01, 1000.0])
def test_the_parts_make_up_the_whole_gradient_as_it_was_before_clipping(limit):
    model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Linear(3, 2))
    model(torch.ones(7, 5)).pow(2).sum().backward()
    whole = float(torch.nn.utils.clip_grad_norm_(model.parameters(), limit or math.inf))
    norms = gradient_norms(model, whole, limit)
    assert list(norms) == ["0", "1"]
    assert math.hypot(*norms.values()) == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=IDS)
def test_a_training_tells_them_at_its_first_step_and_where_it_is_measured(chosen):
    events = list(train(build(chosen)))
    measured = {e.step for e in events if isinstance(e, Measured) and e.split == "validation"}
    for event in events:
        if isinstance(event, Step):
            assert bool(event.gradients) == (event.step in measured | {1})
            assert ("gradients" in to_record(event)) == bool(event.gradients)
            if event.gradients:
                whole = math.hypot(*event.gradients.values())
                assert whole == pytest.approx(event.grad_norm, rel=1e-3)


def test_they_change_nothing_about_the_training():
    """Reading them draws nothing at random and leaves the gradient as it is."""
    often = list(train(build(experiment(training={"validate_every": 1}))))
    seldom = list(train(build(experiment(training={"validate_every": 6}))))
    losses = [[e.loss for e in events if isinstance(e, Step)] for events in (often, seldom)]
    assert losses[0] == losses[1]


RMS = 0.2  # of an update, Liu et al. 2025 (Moonlight)

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan et al. 2024

ITERATIONS = 5  # of Newton-Schulz, Jordan et al. 2024

SHAPES = [(5, 3), (3, 5), (5, 5), (2, 3, 5, 5), (3, 7), (7, 11)]


def drawn(shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def as_written(matrix):
    """Newton-Schulz on one matrix in double precision (Jordan et al. 2024)."""
    a, b, c = COEFFICIENTS
    x = matrix.double() / matrix.double().norm()
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


def singular(kind):
    """Singular values of a matrix of 61 x 61, as training has them or worse."""
    return {
        "even": torch.ones(61),
        "falling": torch.logspace(0, -4, 61),
        "of low rank": torch.cat([torch.linspace(1, 0.1, 7), torch.zeros(54)]),
    }[kind].double()


def with_singular(values):
    left, right = (torch.linalg.qr(drawn((len(values), len(values)), n))[0] for n in (1, 2))
    return left, right, left @ values.diag() @ right.mT


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_updates_are_those_of_the_iteration_as_it_is_written(dtype):
    """All at once, whichever side is the longer, and each of several in one tensor."""
    matrices = [drawn(shape, number, dtype) for number, shape in enumerate(SHAPES)]
    tolerance = 1e-9 if dtype is torch.float64 else 1e-4
    for matrix, update in zip(matrices, orthogonal_updates(matrices), strict=True):
        assert update.shape == matrix.shape
        assert update.dtype == dtype
        several = matrix.reshape(-1, *matrix.shape[-2:])
        for one, found in zip(several, update.reshape(several.shape), strict=True):
            wanted = RMS * max(one.shape) ** 0.5 * as_written(one)
            torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["even", "falling", "of low rank"])
def test_in_single_precision_hard_matrices_stay_closer_than_torchs_own(kind):
    """torch.optim.Muon iterates in bf16."""
    _left, _right, matrix = with_singular(singular(kind))
    wanted = RMS * 61**0.5 * as_written(matrix)
    (found,) = orthogonal_updates([matrix.float()])
    weight = nn.Parameter(torch.zeros(61, 61))
    weight.grad = matrix.float()
    theirs = MuonOfTorch([weight], lr=1.0, weight_decay=0, adjust_lr_fn="match_rms_adamw")
    theirs.step()
    apart = [
        float((one.double() - wanted).norm() / wanted.norm()) for one in (found, -weight.detach())
    ]
    assert apart[0] < 0.005
    assert apart[0] < apart[1] / 3


@pytest.mark.parametrize("kind", ["even", "falling"])
def test_the_update_has_the_directions_of_the_svd_and_nearly_equal_lengths(kind):
    """U V^T, but for a length of 0.68 to 1.14 where a singular value was not tiny."""
    values = singular(kind)
    left, right, matrix = with_singular(values)
    (update,) = orthogonal_updates([matrix])
    lengths = left.mT @ (update / (RMS * 61**0.5)) @ right  # diagonal where directions are kept
    torch.testing.assert_close(lengths, lengths.diagonal().diag(), rtol=0, atol=1e-6)
    is_large = values / values.norm() > 0.002
    assert is_large.sum() > 25
    assert float(lengths.diagonal()[is_large].min()) > 0.6
    assert float(lengths.diagonal().max()) < 1.25


def both_ways(rate=0.05, decay=0.3):
    """A little network after three steps by ours, and by torch's Muon beside torch's AdamW."""
    config = TrainingConfig(optimizer="muon", learning_rate=rate, weight_decay=decay, beta1=0.7)
    networks = []
    for _ in range(2):
        torch.manual_seed(3)
        networks.append(nn.Sequential(nn.Linear(7, 11), nn.LayerNorm(11), nn.Linear(11, 7)))
    ours, theirs = networks
    matrices = [one for one in theirs.parameters() if one.ndim == 2]
    others = [one for one in theirs.parameters() if one.ndim == 1]
    optimizers = [
        make_optimizer(ours, config),
        MuonOfTorch(
            matrices, lr=rate, weight_decay=decay, momentum=0.7, adjust_lr_fn="match_rms_adamw"
        ),
        AdamW(others, lr=rate, weight_decay=0.0, betas=(0.7, config.beta2)),
    ]
    for step in range(3):
        for number, (mine, other) in enumerate(
            zip(ours.parameters(), theirs.parameters(), strict=True)
        ):
            mine.grad = drawn(mine.shape, 10 * step + number, torch.float32)
            other.grad = mine.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    return ours, theirs


def test_a_step_is_that_of_torchs_muon_and_torchs_adamw():
    """Matrices within bf16's rounding, in which torch's Muon iterates; the rest exactly."""
    ours, theirs = both_ways()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        if mine.ndim == 2:
            apart = (mine - other).detach().norm() / other.detach().norm()
            assert float(apart) < 0.01
        else:
            torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)


MODELS = [
    *[(family, {}) for family in MODEL_CONFIGS],
    *[
        ("encoder-decoder", {"mistakes": name})
        for name in ("", "no-output-projection", "sliced-heads")
    ],
    ("encoder-decoder", {"projection_bias": False}),
    *[("encoder-only", {"activation": name}) for name in ACTIVATIONS],
    ("encoder-decoder", {"position": "t5-bias", "tie_embeddings": True}),
    ("decoder-only", {"position": "learned", "n_layers": 3}),
    ("vit", {"stem": "conv", "pooling": "cls"}),
    ("vit", {"stem": "patches"}),
    ("captioner", {"stem": "conv", "n_decoder_layers": 3}),
    ("vit", {"stem": "conv-stack"}),
    *[("recurrent", {"attention": name, "n_layers": 3}) for name in ALIGNMENT_SCORES],
    *[("recurrent", {"cell": name, "is_bidirectional": False}) for name in CELLS],
]


def chosen(family, model, **training):
    task = next(iter(tasks_for(family)))
    return experiment(family, task, model=model, training={"optimizer": "muon", **training})


def test_hidden_matrices_are_muons_also_before_labels_and_all_else_adamws():
    for family, model in MODELS:
        made = chosen(family, model)
        own = new_model(made)
        hidden, rest = {}, {}
        for group in make_optimizer(own, made.training).param_groups:
            for weight in group["params"]:
                (hidden if group["is_hidden"] else rest)[id(weight)] = group["weight_decay"]
        aside = ("embedding", "table", "cls", "convolution", "bias", "norm", "output.", "head.")
        for name, weight in own.named_parameters():
            is_hidden = not any(part in name for part in aside) and weight.ndim > 1
            is_hidden &= len(weight) > 1  # else it is a vector
            assert (id(weight) in hidden) is is_hidden, name
            assert (id(weight) in rest) is not is_hidden, name
        assert set(hidden.values()) == {made.training.weight_decay}
        n_hidden = sum(weight.numel() for weight in hidden_matrices(own))
        assert n_hidden == anatomy(made.model, data_shape(made)).n_hidden
    shape = replace(LABEL["mean"], n_hidden=13)
    config, own = model_of("encoder-only", shape, {})
    hidden = hidden_matrices(own)
    assert own.output.hidden.weight in hidden
    assert own.output.labels.weight not in hidden
    assert sum(weight.numel() for weight in hidden) == anatomy(config, shape).n_hidden


@pytest.mark.parametrize("family", MODEL_CONFIGS)
def test_going_on_from_a_checkpoint_is_never_having_stopped(family, tmp_path):
    """Weights and memory, bit for bit."""
    whole = build(chosen(family, {}))
    list(train(whole))
    stopped = build(whole.experiment)
    events = train(stopped)
    while stopped.step < 3:
        next(events)
    checkpoints.save(stopped, tmp_path)
    again = build(whole.experiment)
    checkpoints.load(again, tmp_path)
    list(train(again))
    for one, other in zip(whole.parameters, again.parameters, strict=True):
        assert torch.equal(one, other)
        assert whole.optimizer.state[one].keys() == again.optimizer.state[other].keys()
        for name, value in whole.optimizer.state[one].items():
            assert torch.equal(value, again.optimizer.state[other][name]), name


def test_a_step_whose_gradients_overflowed_is_left_out():
    """As GradScaler does for every optimiser: neither weights nor memory move."""
    network = nn.Sequential(nn.Linear(7, 5), nn.LayerNorm(5))
    optimizer = make_optimizer(network, TrainingConfig(optimizer="muon"))
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    before = [one.detach().clone() for one in network.parameters()]
    loss = scaler.scale(network(torch.ones(3, 7)).sum())
    loss.backward()
    network[0].weight.grad[0, 0] = torch.inf
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert all(map(torch.equal, before, network.parameters()))
    assert not optimizer.state
